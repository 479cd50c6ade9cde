import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import type { Page } from '../common/page.js';
import type { PartnerScope, TenantScope } from '../common/tenant-scope.js';
import type { ListOptions } from '../infra/database/index.js';
import type { TopupEntity, TopupFilters } from './topup.js';
import { TopupsRepository } from './topups.repository.js';

/** Reads top-ups of one partner and mode; anything else is the same 404 (D14). */
@Injectable()
export class ReadTopups {
  constructor(private readonly topups: TopupsRepository) {}

  /** @throws NotFound */
  async getById(scope: TenantScope, id: string): Promise<TopupEntity> {
    const topup = await this.topups.find(scope, id);
    if (!topup) throw new NotFound();
    return topup;
  }

  /** @throws AppError `invalid_cursor` */
  async list(scope: PartnerScope, filters: TopupFilters, options: ListOptions): Promise<Page<TopupEntity>> {
    return this.topups.list(scope, filters, options);
  }
}
