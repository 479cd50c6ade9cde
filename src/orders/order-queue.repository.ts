import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { OrderEntity } from './order.entity.js';
import { type OrderStatus, statusesBefore } from './order-state.js';

/** The right to work on an order: void when the lease lapsed and another worker took it with a higher fence. */
export interface OrderLease {
  readonly orderId: string;
  readonly fence: number;
}

/** SQL of the worker's side of `orders`. Due times and leases are the database's (D40). */
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
  async claim(partnerId: string, slots: number): Promise<readonly OrderLease[]> {
    const { rows } = await sql<{ id: string; fence: string }>(
      this.manager,
      `UPDATE orders o
       SET status = CASE WHEN o.status = 'pending' THEN 'processing' ELSE o.status END,
           lease_until = now() + $3 * interval '1 millisecond',
           fence = o.fence + 1,
           upstream_attempts = o.upstream_attempts + 1,
           updated_at = now()
       FROM (SELECT id FROM orders
             WHERE partner_id = $1 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
             ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) AS due
       WHERE o.id = due.id
       RETURNING o.id, o.fence`,
      [partnerId, slots, this.leaseMs],
    );
    return rows.map((row) => ({ orderId: row.id, fence: Number(row.fence) }));
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

  /** Gives the order back, to be looked at after `delayMs`. */
  async postpone(lease: OrderLease, delayMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE orders SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [lease.orderId, lease.fence, delayMs],
    );
  }

  /** Ends provisioning as issued or partially issued. False when the lease is void: then nothing may be written. */
  async markIssued(
    tx: Tx,
    lease: OrderLease,
    outcome: {
      status: 'issued' | 'partially_issued';
      issued: number;
      failed: number;
      failure: ProviderFailure | null;
    },
  ): Promise<boolean> {
    return this.finish(
      tx,
      lease,
      outcome.status,
      `quantity_issued = $4::int, quantity_failed = $5::int, refunded_amount = unit_price_amount * $5::int, issued_at = now(),
       failure_code = $6, failure_reason = $7`,
      [outcome.issued, outcome.failed, outcome.failure?.code ?? null, outcome.failure?.reason ?? null],
      'processing',
    );
  }

  /** Ends provisioning as failed, everything refunded. False when the lease is void. */
  async markFailed(tx: Tx, lease: OrderLease, failure: ProviderFailure): Promise<boolean> {
    return this.finish(
      tx,
      lease,
      'failed',
      `quantity_failed = quantity, refunded_amount = unit_price_amount * quantity, failed_at = now(),
       failure_code = $4, failure_reason = $5`,
      [failure.code, failure.reason],
      'processing',
    );
  }

  /** Locks the order for `tx`; false when the lease is void. Orders are locked before their eSIMs (D40). */
  async holds(tx: Tx, lease: OrderLease): Promise<boolean> {
    const { rows } = await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE', [
      lease.orderId,
      lease.fence,
    ]);
    return rows.length > 0;
  }

  /** Ends a cancellation that the upstream accepted: everything has come back. False when the lease is void. */
  async markCanceled(tx: Tx, lease: OrderLease): Promise<boolean> {
    const refund = 'refunded_amount = unit_price_amount * quantity, status_before_cancel = NULL';
    return this.finish(tx, lease, 'canceled', refund, [], 'canceling');
  }

  /** Ends a refused cancellation: the order is back where it was (D22). False when the lease is void. */
  async markCancelRefused(
    tx: Tx,
    lease: OrderLease,
    before: OrderStatus,
    failure: ProviderFailure,
  ): Promise<boolean> {
    return this.finish(
      tx,
      lease,
      before,
      'cancel_failure_code = $4, cancel_failure_reason = $5, status_before_cancel = NULL',
      [failure.code, failure.reason],
      'canceling',
    );
  }

  private async finish(
    tx: Tx,
    lease: OrderLease,
    to: OrderStatus,
    assignments: string,
    parameters: readonly SqlParameter[],
    from: OrderStatus,
  ): Promise<boolean> {
    if (!statusesBefore(to).includes(from)) throw new Error(`an order cannot go from ${from} to ${to}`);
    const { affected } = await sql(
      tx.manager,
      `UPDATE orders SET status = $3, next_attempt_at = NULL, lease_until = NULL, updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status = '${from}'`,
      [lease.orderId, lease.fence, to, ...parameters],
    );
    return affected === 1;
  }
}
