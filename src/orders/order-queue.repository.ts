import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql } from '../infra/database/index.js';
import { OrderEntity } from './order.entity.js';

/** The right to work on an order: void when the lease lapsed and another worker took it with a higher fence. */
export interface OrderLease {
  readonly orderId: string;
  readonly fence: number;
}

/** An order that a worker has just taken up. */
export interface ClaimedOrder extends OrderLease {
  /** No placement of it has ever left; the claim itself has noted that one may leave now. */
  readonly neverPlaced: boolean;
}

/** SQL of the worker's queue in `orders`. Due times and leases are the database's (D40). */
@Injectable()
export class OrderQueueRepository {
  private readonly leaseMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'leaseMs'>,
  ) {
    this.leaseMs = config.leaseMs;
  }

  /** Leases up to `slots` due orders of a partner, oldest due first; pending ones become processing. */
  async claim(partnerId: string, slots: number): Promise<readonly ClaimedOrder[]> {
    const { rows } = await sql<{ id: string; fence: string; never_placed: boolean }>(
      this.manager,
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
      [partnerId, slots, this.leaseMs],
    );
    return rows.map((row) => ({
      orderId: row.id,
      fence: Number(row.fence),
      neverPlaced: row.never_placed,
    }));
  }

  async getById(id: string): Promise<OrderEntity> {
    return this.manager.findOneByOrFail(OrderEntity, { id });
  }

  /**
   * When the partner's next order is due. Leased ones do not count: whoever holds the lease looks again at its end,
   * and the sweep finds the lease of a dead worker.
   */
  async nextDueAt(partnerId: string): Promise<Date | null> {
    const { rows } = await sql<{ at: Date | null }>(
      this.manager,
      `SELECT min(next_attempt_at) AS at FROM orders
       WHERE partner_id = $1 AND next_attempt_at IS NOT NULL AND (lease_until IS NULL OR lease_until <= now())`,
      [partnerId],
    );
    return rows[0]?.at ?? null;
  }

  /** Partners that have something due and nobody at it: their wake-up was lost (D1). */
  async listLanesDue(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ partner_id: string }>(
      this.manager,
      `SELECT DISTINCT partner_id FROM orders
       WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now()) LIMIT $1`,
      [limit],
    );
    return rows.map((row) => row.partner_id);
  }

  /** Extends leases that are still ours. */
  async renew(leases: readonly OrderLease[]): Promise<void> {
    await sql(
      this.manager,
      `UPDATE orders o SET lease_until = now() + $3 * interval '1 millisecond'
       FROM (SELECT * FROM unnest($1::text[], $2::bigint[]) AS l (id, fence) ORDER BY id) AS l
       WHERE o.id = l.id AND o.fence = l.fence AND o.lease_until IS NOT NULL`,
      [leases.map((lease) => lease.orderId), leases.map((lease) => lease.fence), this.leaseMs],
    );
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
   * Notes that a placement leaves again, provided that the last one is longer ago than the upstream's read lag.
   * Answers the milliseconds that are still to wait, 0 when it may leave; null when the lease is void.
   */
  async placeAgain(lease: OrderLease, readLagMs: number): Promise<number | null> {
    const { rows } = await sql<{ wait_ms: number }>(
      this.manager,
      `WITH own AS (
         SELECT id, coalesce(upstream_placed_at + $3 * interval '1 millisecond', now()) AS free_at
         FROM orders WHERE id = $1 AND fence = $2 AND status = 'processing' FOR UPDATE
       ), placed AS (
         UPDATE orders o SET upstream_placed_at = now() FROM own WHERE o.id = own.id AND own.free_at <= now()
       )
       SELECT greatest(0, ceil(extract(epoch FROM free_at - now()) * 1000))::int AS wait_ms FROM own`,
      [lease.orderId, lease.fence, readLagMs],
    );
    return rows[0]?.wait_ms ?? null;
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
