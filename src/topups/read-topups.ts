import { Injectable } from '@nestjs/common';
import { NotFound } from '../common/errors/index.js';
import type { Page } from '../common/page.js';
import type { ListOptions } from '../infra/database/index.js';
import type { Buyer } from './place-topup.js';
import type { TopupEntity } from './topup.entity.js';
import { type TopupFilters, type TopupOwner, TopupsRepository } from './topups.repository.js';

/** Reads top-ups of one partner and mode; anything else is the same 404 (D14). */
@Injectable()
export class ReadTopups {
  constructor(private readonly topups: TopupsRepository) {}

  /** @throws NotFound */
  async getById(buyer: Buyer, id: string): Promise<TopupEntity> {
    const topup = await this.topups.find(buyer, id);
    if (!topup) throw new NotFound();
    return topup;
  }

  /** @throws AppError `invalid_cursor` */
  async list(owner: TopupOwner, filters: TopupFilters, options: ListOptions): Promise<Page<TopupEntity>> {
    return this.topups.list(owner, filters, options);
  }
}
