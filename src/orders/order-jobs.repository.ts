import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { prepared, rowToEntity, sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import {
  type Claim,
  InjectNotifier,
  LeasedJobsRepository,
  NO_OPEN_RESTORE,
  notifierModule,
  WorkerNotifier,
} from '../infra/jobs/index.js';
import { type TraceContext, Tracer } from '../infra/tracing/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { OrderEntity, type OrderStatus, statusesBefore } from './order.js';

/** BullMQ queue of notifications for partners' orders; a group is a partner and a mode, so that these take turns (D27, D41). */
export const ORDER_JOBS = 'order-jobs';

export const OrderNotifierModule = notifierModule(ORDER_JOBS);

/** The right to work on an order: void when the lease lapsed and another worker took it with a higher fence. */
export interface OrderLease {
  readonly orderId: string;
  readonly fence: number;
}

/** An order that a worker has just claimed. */
export interface ClaimedOrder extends OrderLease {
  /** As the claim left it. */
  readonly order: OrderEntity;
  /** No placement of it was ever sent; the claim itself has recorded that one may be sent now. */
  readonly neverPlaced: boolean;
  /** A time of `performance.now()` before the claim's record was written. */
  readonly sendWindowStart: number;
  /** The span of a claim that took several; null of one alone, or when nothing is traced. */
  readonly claimedIn: TraceContext | null;
}

/** A lease that support has acquired. */
interface AcquiredOrderLease extends OrderLease {
  /** How long the provider may still deny what the last call did; 0: it cannot any more. */
  readonly lagLeftMs: number;
}

/** An order as it was when its provider was asked, while no worker held it. */
export interface OrderVersion {
  readonly status: 'processing' | 'canceling';
  readonly fence: number;
  /** For how long the provider may deny what a call did. */
  readonly readLagMs: number;
}

/** All that the entity has. Named, because a prepared statement must not read more after a migration. */
const COLUMNS = `o.id, o.partner_id, o.mode, o.status, o.version, o.package_id, o.quantity, o.quantity_issued, o.quantity_failed, o.data_bytes,
  o.validity_days, o.activation_policy, o.unit_price_amount, o.refunded_amount, o.currency, o.reference, o.metadata,
  o.provider, o.provider_reference, o.upstream_package_id, o.unit_cost_micros, o.unit_cost_currency,
  o.upstream_placed_at, o.failure_code, o.failure_reason, o.cancel_failure_code, o.cancel_failure_reason,
  o.status_before_cancel, o.cancel_requested_at, o.upstream_attempts, o.last_error, o.next_attempt_at, o.lease_until,
  o.fence, o.accepted_request_id, o.traceparent, o.created_at, o.updated_at, o.issued_at, o.failed_at`;

const CLAIM = `UPDATE orders o
  SET status = CASE WHEN o.status = 'pending' THEN 'processing' ELSE o.status END,
      lease_until = now() + $4 * interval '1 millisecond',
      fence = o.fence + 1,
      upstream_attempts = o.upstream_attempts + 1,
      -- before the call leaves: whoever finds the order later knows that one may have; a cancellation places nothing
      upstream_placed_at = CASE o.status WHEN 'canceling' THEN o.upstream_placed_at ELSE coalesce(o.upstream_placed_at, now()) END,
      updated_at = now()
  FROM (SELECT id, upstream_placed_at FROM orders
        WHERE partner_id = $1 AND mode = $2 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
          AND ${NO_OPEN_RESTORE}
        ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
  WHERE o.id = due.id
  RETURNING ${COLUMNS}, due.upstream_placed_at IS NULL AS never_placed`;

/** Until when a call may have taken effect at the provider; null when none ever left. A worker at a cancellation updates the row. */
const LAST_CALL = `(CASE status WHEN 'canceling' THEN updated_at ELSE upstream_placed_at END)`;

/** SQL of claims, leases and placements in `orders`. Due times and leases are the database's (D40). */
@Injectable()
export class OrderJobsRepository extends LeasedJobsRepository<OrderLease, ClaimedOrder> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
    tracer: Tracer,
  ) {
    super(manager, {
      table: 'orders',
      claim: CLAIM,
      leaseMs,
      notifier,
      tracer,
      idOf: (lease) => lease.orderId,
    });
  }

  /** Leases and reads up to `limit` due orders of a partner and mode, oldest due first; pending ones become processing. */
  async claim(group: string, limit: number): Promise<Claim<ClaimedOrder>> {
    const sendWindowStart = performance.now();
    const { items, claimedIn, ...rest } = await this.claimRows<{
      id: string;
      traceparent: string | null;
      never_placed: boolean;
    }>(group, limit, [this.leaseMs]);
    const claimed = items.map((row) => {
      const order = rowToEntity(this.manager, OrderEntity, row);
      const lease = { orderId: order.id, fence: order.fence };
      return { ...lease, order, neverPlaced: row.never_placed, sendWindowStart, claimedIn };
    });
    return { ...rest, items: claimed };
  }

  /**
   * The fence of an order in `status` that no worker holds; null when one does, or the status is another. While the
   * provider may deny what the last call did, the order is due only after that and as long again twice, for support
   * to decide in: a worker's retry would begin the read lag anew, for ever.
   */
  async deferRetries(
    orderId: string,
    status: OrderVersion['status'],
    readLagMs: number,
  ): Promise<OrderVersion | null> {
    const { rows } = await sql<{ fence: string }>(
      this.manager,
      `UPDATE orders SET next_attempt_at = CASE WHEN ${LAST_CALL} + $3 * interval '1 millisecond' > now()
         THEN greatest(next_attempt_at, ${LAST_CALL} + 3 * $3 * interval '1 millisecond') ELSE next_attempt_at END
       WHERE id = $1 AND status = $2 AND (lease_until IS NULL OR lease_until <= now()) RETURNING fence`,
      [orderId, status, readLagMs],
    );
    return rows[0] ? { status, fence: Number(rows[0].fence), readLagMs } : null;
  }

  /**
   * Acquires the lease of an order that no worker has claimed since `version`: the leases before are void. Null when
   * one has, or the order has ended.
   */
  async acquireLease(tx: Tx, orderId: string, version: OrderVersion): Promise<AcquiredOrderLease | null> {
    const { rows } = await sql<{ fence: string; lag_left_ms: number }>(
      tx.manager,
      `UPDATE orders SET fence = fence + 1 WHERE id = $1 AND status = $2 AND fence = $3
         AND (lease_until IS NULL OR lease_until <= now())
       RETURNING fence, greatest(0, ceil(extract(epoch FROM
         ${LAST_CALL} + $4 * interval '1 millisecond' - now()) * 1000))::int AS lag_left_ms`,
      [orderId, version.status, version.fence, version.readLagMs],
    );
    const row = rows[0];
    return row ? { orderId, fence: Number(row.fence), lagLeftMs: row.lag_left_ms } : null;
  }
}

/** What provisioning of an order came to. */
export interface ProvisioningEnd {
  readonly lease: OrderLease;
  /** How many of the order's eSIMs; 0: it failed. */
  readonly issued: number;
  /** Set when fewer than ordered were issued. */
  readonly failure: ProviderFailure | null;
}

/** An order after its end was written. */
export interface ChangedOrder {
  readonly version: number;
  readonly at: Date;
}

/** Locked in the order of ids first: an UPDATE with a join has an order of its own. */
const END_PROVISIONING = prepared(`
  WITH held AS (
    SELECT o.id, e.issued, e.code, e.reason, o.quantity - e.issued AS failed
    FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[]) AS e (id, fence, issued, code, reason)
    JOIN orders o ON o.id = e.id AND o.fence = e.fence AND o.status = 'processing'
    ORDER BY o.id FOR NO KEY UPDATE OF o
  )
  UPDATE orders o
  SET status = CASE WHEN h.issued = 0 THEN 'failed' WHEN h.failed = 0 THEN 'issued' ELSE 'partially_issued' END,
      quantity_issued = h.issued, quantity_failed = h.failed, refunded_amount = o.unit_price_amount * h.failed,
      issued_at = CASE WHEN h.issued > 0 THEN now() END, failed_at = CASE WHEN h.issued = 0 THEN now() END,
      failure_code = h.code, failure_reason = h.reason, next_attempt_at = NULL, lease_until = NULL,
      cancel_requested_at = NULL, last_error = NULL, updated_at = now()
  FROM held h WHERE o.id = h.id
  RETURNING o.id, o.fence, o.version, clock_timestamp() AS at`);

/**
 * SQL that records the outcome of what a worker, or support, works on in `orders`. Every write is guarded by the lease's fence and the
 * status, and answers the order's version (D48); null means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class OrderOutcomesRepository {
  /**
   * Ends the provisioning of many orders, in the order of their ids (D40): what was not issued comes back. Answers for
   * each what changed; null where the lease is void, also beside a later lease of the same order.
   */
  async end(tx: Tx, ends: readonly ProvisioningEnd[]): Promise<readonly (ChangedOrder | null)[]> {
    const { rows } = await sql<{ id: string; fence: string; version: number; at: Date }>(
      tx.manager,
      END_PROVISIONING,
      [
        ends.map(({ lease }) => lease.orderId),
        ends.map(({ lease }) => lease.fence),
        ends.map(({ issued }) => issued),
        ends.map(({ failure }) => failure?.code ?? null),
        ends.map(({ failure }) => failure?.reason ?? null),
      ],
    );
    const changed = new Map(rows.map(({ id, fence, ...change }) => [`${id} ${fence}`, change]));
    return ends.map(({ lease }) => changed.get(`${lease.orderId} ${lease.fence}`) ?? null);
  }

  /** Locks the order for `tx`. Orders are locked before their eSIMs (D40). */
  async lockIfHeld(tx: Tx, lease: OrderLease): Promise<boolean> {
    const { rows } = await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE', [
      lease.orderId,
      lease.fence,
    ]);
    return rows.length > 0;
  }

  /** Ends a cancellation that the provider accepted: `canceled` eSIMs, all that were left, have come back. */
  async markCanceled(tx: Tx, lease: OrderLease, canceled: number): Promise<number | null> {
    const refund =
      'refunded_amount = refunded_amount + unit_price_amount * $4::int, status_before_cancel = NULL';
    return this.endCancellation(tx, lease, 'canceled', refund, [canceled]);
  }

  /** Ends a cancellation that took only some eSIMs back, or none: the order is back where it was (D22). */
  async markCancelRefused(
    tx: Tx,
    lease: OrderLease,
    before: OrderStatus,
    outcome: { readonly canceled: number; readonly failure: ProviderFailure },
  ): Promise<number | null> {
    return this.endCancellation(
      tx,
      lease,
      before,
      `refunded_amount = refunded_amount + unit_price_amount * $4::int,
       cancel_failure_code = $5, cancel_failure_reason = $6, status_before_cancel = NULL`,
      [outcome.canceled, outcome.failure.code, outcome.failure.reason],
    );
  }

  private async endCancellation(
    tx: Tx,
    lease: OrderLease,
    to: OrderStatus,
    assignments: string,
    parameters: readonly SqlParameter[],
  ): Promise<number | null> {
    if (!statusesBefore(to).includes('canceling')) throw new Error(`a cancellation cannot end in ${to}`);
    const { rows } = await sql<{ version: number }>(
      tx.manager,
      `UPDATE orders SET status = $3, next_attempt_at = NULL, lease_until = NULL, cancel_requested_at = NULL,
         last_error = NULL, updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status = 'canceling' RETURNING version`,
      [lease.orderId, lease.fence, to, ...parameters],
    );
    return rows[0]?.version ?? null;
  }
}
