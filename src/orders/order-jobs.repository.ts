import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql } from '../infra/database/index.js';
import { type Claim, InjectNotifier, LeasedJobsRepository, WorkerNotifier } from '../infra/jobs/index.js';
import { OrderEntity } from './order.entity.js';
import { ORDER_JOBS } from './order-jobs.js';

/** The right to work on an order: void when the lease lapsed and another worker took it with a higher fence. */
export interface OrderLease {
  readonly orderId: string;
  readonly fence: number;
}

/** An order that a worker has just taken up. */
export interface ClaimedOrder extends OrderLease {
  /** No placement of it has ever left; the claim itself has noted that one may leave now. */
  readonly neverPlaced: boolean;
  /** A time of `performance.now()` before the claim's note was written. */
  readonly notedAfter: number;
}

/** The answer to who asks to place an order again. */
export interface PlacementTurn {
  /** Milliseconds that are still to wait; 0 when it is noted and may leave now. */
  readonly waitMs: number;
  /** A time of `performance.now()` before the note was written. */
  readonly notedAfter: number;
}

/** SQL of the worker's queue in `orders`. Due times and leases are the database's (D40). */
@Injectable()
export class OrderJobsRepository extends LeasedJobsRepository<OrderLease, ClaimedOrder> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
  ) {
    super(manager, { table: 'orders', leaseMs, notifier, idOf: (lease) => lease.orderId });
  }

  /** Leases up to `limit` due orders of a partner, oldest due first; pending ones become processing. */
  async claim(partnerId: string, limit: number): Promise<Claim<ClaimedOrder>> {
    const notedAfter = performance.now();
    const { items, ...rest } = await this.claimRows<{ id: string; fence: string; never_placed: boolean }>(
      `UPDATE orders o
       SET status = CASE WHEN o.status = 'pending' THEN 'processing' ELSE o.status END,
           lease_until = now() + $3 * interval '1 millisecond',
           fence = o.fence + 1,
           upstream_attempts = o.upstream_attempts + 1,
           -- before the call leaves: whoever finds the order later knows that one may have
           upstream_placed_at = coalesce(o.upstream_placed_at, now()),
           updated_at = now()
       FROM (SELECT id, upstream_placed_at FROM orders
             WHERE partner_id = $1 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
             ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) AS due
       WHERE o.id = due.id
       RETURNING o.id, o.fence, due.upstream_placed_at IS NULL AS never_placed`,
      [partnerId, limit, this.leaseMs],
    );
    const claimed = items.map((row) => ({
      orderId: row.id,
      fence: Number(row.fence),
      neverPlaced: row.never_placed,
      notedAfter,
    }));
    return { ...rest, items: claimed };
  }

  async getById(id: string): Promise<OrderEntity> {
    return this.manager.findOneByOrFail(OrderEntity, { id });
  }

  /** Gives the order back, to be looked at after `delayMs`; `errorClass` says what went wrong, if anything did. */
  async postpone(lease: OrderLease, delayMs: number, errorClass: string | null = null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE orders SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL,
         last_error = $4, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [lease.orderId, lease.fence, delayMs, errorClass],
    );
  }

  /**
   * Notes that a placement leaves again, provided that the last one is longer ago than the provider's read lag.
   * Null when the lease is void.
   */
  async placeAgain(lease: OrderLease, readLagMs: number): Promise<PlacementTurn | null> {
    const notedAfter = performance.now();
    const { rows } = await sql<{ wait_ms: number }>(
      this.manager,
      `WITH own AS (
         SELECT id, coalesce(upstream_placed_at + $3 * interval '1 millisecond', now()) AS free_at
         FROM orders WHERE id = $1 AND fence = $2 AND status = 'processing' AND lease_until > now() FOR UPDATE
       ), placed AS (
         UPDATE orders o SET upstream_placed_at = now() FROM own WHERE o.id = own.id AND own.free_at <= now()
       )
       SELECT greatest(0, ceil(extract(epoch FROM free_at - now()) * 1000))::int AS wait_ms FROM own`,
      [lease.orderId, lease.fence, readLagMs],
    );
    return rows[0] ? { waitMs: rows[0].wait_ms, notedAfter } : null;
  }

  /** The placement may have taken effect at any time until now: its read lag begins only here. */
  async prolongPlacement(lease: OrderLease): Promise<void> {
    await this.writePlacement(lease, 'clock_timestamp()');
  }

  /** Takes back what the claim noted: the first placement certainly did not leave. */
  async forgetPlacement(lease: OrderLease): Promise<void> {
    await this.writePlacement(lease, 'NULL');
  }

  private async writePlacement(lease: OrderLease, value: 'clock_timestamp()' | 'NULL'): Promise<void> {
    await sql(
      this.manager,
      `UPDATE orders SET upstream_placed_at = ${value} WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.orderId, lease.fence],
    );
  }
}
