import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { KeysetPages, type ListOptions } from '../infra/database/index.js';
import { TopupEntity } from './topup.entity.js';

/** Top-ups of every partner, both modes, that the upstream has owed an answer for too long (D22). */
@Injectable()
export class TopupsNeedingReview {
  private readonly afterMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.afterMs = config.provisioning.needsReviewAfterMs;
  }

  /** Oldest first. @throws AppError `invalid_cursor` */
  async list(options: ListOptions): Promise<Page<TopupEntity>> {
    const query = this.manager
      .createQueryBuilder(TopupEntity, 't')
      .where(`t.status = 'processing'`)
      .andWhere(`t.created_at <= now() - :afterMs * interval '1 millisecond'`, { afterMs: this.afterMs });
    return this.pages.list(query, options, 'oldest_first');
  }
}
