import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import type { AlertEntity } from '../alerts/index.js';
import type { Page } from '../common/page.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { CursorCodec } from '../infra/crypto/index.js';
import { type ListOptions, readWithin } from '../infra/database/index.js';
import { OrderEntity } from '../orders/index.js';
import type { Purchase } from '../purchases/index.js';
import { TopupEntity } from '../topups/index.js';

/** Counts stop here: beyond this it is an outage, whatever the exact number. */
const MAX_COUNTED = 1_000;

/** A purchase without a result, and since when it has waited for one. */
export interface NeedingReview<P extends Purchase> {
  readonly purchase: P;
  readonly since: Date;
}

/** SQL about a row `t`. */
interface ReviewQuery<P extends Purchase> {
  readonly entity: new () => P;
  readonly isOpen: string;
  /** Time of the first provider call without a result. */
  readonly since: string;
  /** Scope of the list's cursors. */
  readonly cursorScope: string;
}

/** A placement or cancellation was sent twice, and nothing repeats automatically any more. */
const IS_PLACED_TWICE = `EXISTS (SELECT 1 FROM provider_placements p
  WHERE p.provider_reference = t.provider_reference AND p.placements > 1
    AND (p.operation = 'cancel') = (t.status = 'canceling'))`;

/** Purchases of all partners and both modes whose provider result is overdue, or that were placed twice (D19, D22). */
abstract class PurchasesNeedingReview<P extends Purchase> {
  private readonly afterMs: number;
  private readonly isLate: string;

  protected constructor(
    private readonly manager: EntityManager,
    private readonly cursors: CursorCodec,
    { provisioning }: Pick<AppConfig, 'provisioning'>,
    private readonly query: ReviewQuery<P>,
  ) {
    this.afterMs = provisioning.needsReviewAfterMs;
    this.isLate = `${query.since} <= now() - :afterMs * interval '1 millisecond'`;
  }

  /** Oldest first. @throws AppError `invalid_cursor` */
  async list(options: ListOptions): Promise<Page<NeedingReview<P>>> {
    return this.listWhere(`(${this.isLate} OR ${IS_PLACED_TWICE})`, options);
  }

  /** Only overdue ones; a second placement alerts support at once. */
  async listLate(options: ListOptions): Promise<Page<NeedingReview<P>>> {
    return this.listWhere(this.isLate, options);
  }

  /** Those of the purchases that still wait for their provider's result. */
  async selectOpen(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const { entity, isOpen } = this.query;
    const rows = await this.manager
      .createQueryBuilder(entity, 't')
      .where('t.id IN (:...ids)', { ids })
      .andWhere(isOpen)
      .select('t.id', 'id')
      .getRawMany<{ id: string }>();
    return new Set(rows.map(({ id }) => id));
  }

  /** Length of `list`, at most MAX_COUNTED. */
  async count(): Promise<number> {
    return readWithin(this.manager, async (manager) => {
      const found = this.select(manager, `(${this.isLate} OR ${IS_PLACED_TWICE})`);
      const rows = await found.select('t.id', 'id').limit(MAX_COUNTED).getRawMany();
      return rows.length;
    });
  }

  private select(manager: EntityManager, condition: string): SelectQueryBuilder<P> {
    const { entity, isOpen } = this.query;
    const { afterMs } = this;
    return manager.createQueryBuilder(entity, 't').where(isOpen).andWhere(condition, { afterMs });
  }

  private async listWhere(
    condition: string,
    { limit, cursor }: ListOptions,
  ): Promise<Page<NeedingReview<P>>> {
    const { since, cursorScope } = this.query;
    const query = this.select(this.manager, condition);
    if (cursor !== undefined) {
      const [at, id] = this.cursors.decode(cursor, [cursorScope]);
      query.andWhere(`(${since}, t.id) > (:at::timestamptz, :id)`, { at, id });
    }
    // As text, because a Date would drop the microseconds.
    const { entities, raw } = await query
      .addSelect(since, 'since')
      .addSelect(`(${since})::text`, 'since_text')
      .orderBy('since', 'ASC')
      .addOrderBy('t.id', 'ASC')
      .limit(limit + 1)
      .getRawAndEntities<{ since: Date; since_text: string }>();
    const items = entities.slice(0, limit).map((purchase, i) => ({ purchase, since: raw[i]!.since }));
    const hasMore = entities.length > limit;
    const last = items.at(-1);
    const nextCursor =
      hasMore && last
        ? this.cursors.encode([raw[items.length - 1]!.since_text, last.purchase.id], [cursorScope])
        : null;
    return { items, hasMore, nextCursor };
  }
}

/**
 * Whether the alert is about the wait for a result, and therefore ends with it. Others report a loss, which remains after
 * the purchase has ended: a price above the list, or a second placement, for which the provider may charge twice.
 */
export function endsWithPurchase({ details }: Pick<AlertEntity, 'details'>): boolean {
  return details['since'] !== undefined;
}

/** Whether support has dealt with the alert when it decides on the purchase: it has then seen the provider's bill. */
export function endsWithDecision(alert: Pick<AlertEntity, 'details'>): boolean {
  return endsWithPurchase(alert) || alert.details['what'] === 'placed_again';
}

@Injectable()
export class OrdersNeedingReview extends PurchasesNeedingReview<OrderEntity> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    cursors: CursorCodec,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    super(manager, cursors, config, {
      entity: OrderEntity,
      isOpen: `t.status IN ('processing', 'canceling')`,
      since: `CASE t.status WHEN 'canceling' THEN coalesce(t.cancel_requested_at, t.updated_at) ELSE t.created_at END`,
      cursorScope: 'orders.needs-review',
    });
  }
}

@Injectable()
export class TopupsNeedingReview extends PurchasesNeedingReview<TopupEntity> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    cursors: CursorCodec,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'provisioning'>,
  ) {
    super(manager, cursors, config, {
      entity: TopupEntity,
      isOpen: `t.status = 'processing'`,
      since: 't.created_at',
      cursorScope: 'topups.needs-review',
    });
  }
}
