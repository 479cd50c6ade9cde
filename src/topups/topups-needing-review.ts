import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { KeysetPages, type ListOptions } from '../infra/database/index.js';
import { TopupEntity } from './topup.entity.js';

const IS_LATE = `t.created_at <= now() - :afterMs * interval '1 millisecond'`;
/** Nothing more is bought for it by itself: only support can settle it, or an answer that comes late. */
const IS_PLACED_TWICE = `EXISTS (SELECT 1 FROM provider_placements p
  WHERE p.provider_reference = t.provider_reference AND p.placements > 1)`;

/**
 * Top-ups of every partner, both modes, that the provider has owed an answer for too long, or that were placed twice
 * (D19, D22).
 */
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
    return this.listWhere(`(${IS_LATE} OR ${IS_PLACED_TWICE})`, options);
  }

  /** Those that are late. Who places something twice tells support at once. */
  async listLate(options: ListOptions): Promise<Page<TopupEntity>> {
    return this.listWhere(IS_LATE, options);
  }

  private listWhere(condition: string, options: ListOptions): Promise<Page<TopupEntity>> {
    const query = this.manager
      .createQueryBuilder(TopupEntity, 't')
      .where(`t.status = 'processing'`)
      .andWhere(condition, { afterMs: this.afterMs });
    return this.pages.list(query, options, 'oldest_first');
  }
}
