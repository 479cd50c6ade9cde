import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import { OrderEntity } from './order.entity.js';

/** An order without an answer, and since when it waits for one. */
export interface OrderNeedingReview {
  readonly order: OrderEntity;
  readonly since: Date;
}

/** When the provider was first asked for what has not come: the order, or its cancellation. */
const SINCE = `CASE t.status WHEN 'canceling' THEN coalesce(t.cancel_requested_at, t.updated_at) ELSE t.created_at END`;
const IS_LATE = `${SINCE} <= now() - :afterMs * interval '1 millisecond'`;
const SCOPE = ['orders.needs-review'];
/** Something of it was placed, or is taken back, for a second time, and nothing is repeated any more by itself. */
const IS_PLACED_TWICE = `EXISTS (SELECT 1 FROM provider_placements p
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
    return this.listWhere(`(${IS_LATE} OR ${IS_PLACED_TWICE})`, options);
  }

  /** Those that are late. Who places something twice tells support at once. */
  async listLate(options: ListOptions): Promise<Page<OrderNeedingReview>> {
    return this.listWhere(IS_LATE, options);
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
      const [at, id] = this.cursors.decode(cursor, SCOPE);
      query.andWhere(`(${SINCE}, t.id) > (:at::timestamptz, :id)`, { at, id });
    }
    // As text beside the Date, which would cut the microseconds.
    const { entities, raw } = await query
      .addSelect(SINCE, 'since')
      .addSelect(`(${SINCE})::text`, 'since_text')
      .orderBy('since', 'ASC')
      .addOrderBy('t.id', 'ASC')
      .limit(limit + 1)
      .getRawAndEntities<{ since: Date; since_text: string }>();
    const items = entities.slice(0, limit).map((order, i) => ({ order, since: raw[i]!.since }));
    const hasMore = entities.length > limit;
    const last = items.at(-1);
    const nextCursor =
      hasMore && last ? this.cursors.encode([raw[items.length - 1]!.since_text, last.order.id], SCOPE) : null;
    return { items, hasMore, nextCursor };
  }
}
