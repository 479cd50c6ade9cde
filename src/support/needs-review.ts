import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { CursorCodec } from '../infra/crypto/index.js';
import { KeysetPages, type ListOptions, readWithin } from '../infra/database/index.js';
import { OrderEntity } from '../orders/index.js';
import { TopupEntity } from '../topups/index.js';

/** More than this is an outage, and how much more does not matter. */
const MOST_COUNTED = 1_000;

/** An order without an answer, and since when it waits for one. */
export interface OrderNeedingReview {
  readonly order: OrderEntity;
  readonly since: Date;
}

/** When the provider was first asked for what has not come: the order, or its cancellation. */
const ORDER_SINCE = `CASE t.status WHEN 'canceling' THEN coalesce(t.cancel_requested_at, t.updated_at) ELSE t.created_at END`;
const IS_ORDER_LATE = `${ORDER_SINCE} <= now() - :afterMs * interval '1 millisecond'`;
const ORDER_CURSOR_SCOPE = ['orders.needs-review'];
/** Something of it was placed, or is taken back, for a second time, and nothing is repeated any more by itself. */
const IS_ORDER_PLACED_TWICE = `EXISTS (SELECT 1 FROM provider_placements p
  WHERE p.provider_reference = t.provider_reference AND p.placements > 1
    AND (p.operation = 'cancel') = (t.status = 'canceling'))`;

/**
 * Orders of every partner, both modes, that the provider has owed an answer for too long, or of which something was
 * placed twice (D19, D22).
 */
@Injectable()
export class OrdersNeedingReview {
  private readonly afterMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly cursors: CursorCodec,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    this.afterMs = config.provisioning.needsReviewAfterMs;
  }

  /** Oldest first. @throws AppError `invalid_cursor` */
  async list(options: ListOptions): Promise<Page<OrderNeedingReview>> {
    return this.listWhere(`(${IS_ORDER_LATE} OR ${IS_ORDER_PLACED_TWICE})`, options);
  }

  /** Those that are late. Who places something twice tells support at once. */
  async listLate(options: ListOptions): Promise<Page<OrderNeedingReview>> {
    return this.listWhere(IS_ORDER_LATE, options);
  }

  /** How many `list` would show, MOST_COUNTED at most. */
  async count(): Promise<number> {
    return readWithin(this.manager, async (manager) => {
      const rows = await manager
        .createQueryBuilder(OrderEntity, 't')
        .select('t.id', 'id')
        .where(`t.status IN ('processing', 'canceling')`)
        .andWhere(`(${IS_ORDER_LATE} OR ${IS_ORDER_PLACED_TWICE})`, { afterMs: this.afterMs })
        .limit(MOST_COUNTED)
        .getRawMany();
      return rows.length;
    });
  }

  private async listWhere(
    condition: string,
    { limit, cursor }: ListOptions,
  ): Promise<Page<OrderNeedingReview>> {
    const query = this.manager
      .createQueryBuilder(OrderEntity, 't')
      .where(`t.status IN ('processing', 'canceling')`)
      .andWhere(condition, { afterMs: this.afterMs });
    if (cursor !== undefined) {
      const [at, id] = this.cursors.decode(cursor, ORDER_CURSOR_SCOPE);
      query.andWhere(`(${ORDER_SINCE}, t.id) > (:at::timestamptz, :id)`, { at, id });
    }
    // As text beside the Date, which would cut the microseconds.
    const { entities, raw } = await query
      .addSelect(ORDER_SINCE, 'since')
      .addSelect(`(${ORDER_SINCE})::text`, 'since_text')
      .orderBy('since', 'ASC')
      .addOrderBy('t.id', 'ASC')
      .limit(limit + 1)
      .getRawAndEntities<{ since: Date; since_text: string }>();
    const items = entities.slice(0, limit).map((order, i) => ({ order, since: raw[i]!.since }));
    const hasMore = entities.length > limit;
    const last = items.at(-1);
    const nextCursor =
      hasMore && last
        ? this.cursors.encode([raw[items.length - 1]!.since_text, last.order.id], ORDER_CURSOR_SCOPE)
        : null;
    return { items, hasMore, nextCursor };
  }
}

const IS_TOPUP_LATE = `t.created_at <= now() - :afterMs * interval '1 millisecond'`;
/** Nothing more is bought for it by itself: only support can settle it, or an answer that comes late. */
const IS_TOPUP_PLACED_TWICE = `EXISTS (SELECT 1 FROM provider_placements p
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
    return this.listWhere(`(${IS_TOPUP_LATE} OR ${IS_TOPUP_PLACED_TWICE})`, options);
  }

  /** Those that are late. Who places something twice tells support at once. */
  async listLate(options: ListOptions): Promise<Page<TopupEntity>> {
    return this.listWhere(IS_TOPUP_LATE, options);
  }

  /** How many `list` would show, MOST_COUNTED at most. */
  async count(): Promise<number> {
    return readWithin(this.manager, async (manager) => {
      const rows = await manager
        .createQueryBuilder(TopupEntity, 't')
        .select('t.id', 'id')
        .where(`t.status = 'processing'`)
        .andWhere(`(${IS_TOPUP_LATE} OR ${IS_TOPUP_PLACED_TWICE})`, { afterMs: this.afterMs })
        .limit(MOST_COUNTED)
        .getRawMany();
      return rows.length;
    });
  }

  private listWhere(condition: string, options: ListOptions): Promise<Page<TopupEntity>> {
    const query = this.manager
      .createQueryBuilder(TopupEntity, 't')
      .where(`t.status = 'processing'`)
      .andWhere(condition, { afterMs: this.afterMs });
    return this.pages.list(query, options, 'oldest_first');
  }
}
