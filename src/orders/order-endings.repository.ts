import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { OrderLease } from './order-jobs.repository.js';
import { type OrderStatus, statusesBefore } from './order-state.js';

type OpenStatus = 'processing' | 'canceling';

/** An order that support has taken over. */
export interface TakenOver extends OrderLease {
  /** How long the provider may still deny what the last call did; 0: it cannot any more. */
  readonly lagLeftMs: number;
}

/** Until when a call may have taken effect at the provider; null when none ever left. A worker at a cancellation updates the row. */
const LAST_CALL = `(CASE status WHEN 'canceling' THEN updated_at ELSE upstream_placed_at END)`;

/**
 * SQL that ends what a worker, or support, works on in `orders`. Every write is guarded by the lease's fence and the
 * status; false means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class OrderEndingsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Ends provisioning as issued or partially issued; what was not issued came back. */
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

  /** Ends provisioning as failed, everything refunded. */
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

  /** Locks the order for `tx`. Orders are locked before their eSIMs (D40). */
  async holds(tx: Tx, lease: OrderLease): Promise<boolean> {
    const { rows } = await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE', [
      lease.orderId,
      lease.fence,
    ]);
    return rows.length > 0;
  }

  /**
   * The fence of an order that nobody is at in `status`; null when somebody is, or the status is another. While the
   * provider may deny what the last call did, the order is due only after that and as long again twice, for support
   * to decide in: a worker's retry would begin the read lag anew, for ever.
   */
  async keepWorkersOff(orderId: string, status: OpenStatus, readLagMs: number): Promise<number | null> {
    const { rows } = await sql<{ fence: string }>(
      this.manager,
      `UPDATE orders SET next_attempt_at = CASE WHEN ${LAST_CALL} + $3 * interval '1 millisecond' > now()
         THEN greatest(next_attempt_at, ${LAST_CALL} + 3 * $3 * interval '1 millisecond') ELSE next_attempt_at END
       WHERE id = $1 AND status = $2 AND (lease_until IS NULL OR lease_until <= now()) RETURNING fence`,
      [orderId, status, readLagMs],
    );
    return rows[0] ? Number(rows[0].fence) : null;
  }

  /**
   * Takes an order over that nobody has been at since it had `fence`: the leases before are void. Null when somebody
   * has, or has ended it.
   */
  async takeOver(
    tx: Tx,
    orderId: string,
    {
      about,
      fence,
      readLagMs,
    }: { readonly about: OpenStatus; readonly fence: number; readonly readLagMs: number },
  ): Promise<TakenOver | null> {
    const { rows } = await sql<{ fence: string; lag_left_ms: number }>(
      tx.manager,
      `UPDATE orders SET fence = fence + 1 WHERE id = $1 AND status = $2 AND fence = $3
         AND (lease_until IS NULL OR lease_until <= now())
       RETURNING fence, greatest(0, ceil(extract(epoch FROM
         ${LAST_CALL} + $4 * interval '1 millisecond' - now()) * 1000))::int AS lag_left_ms`,
      [orderId, about, fence, readLagMs],
    );
    const row = rows[0];
    return row ? { orderId, fence: Number(row.fence), lagLeftMs: row.lag_left_ms } : null;
  }

  /** Makes an order that is not at its end due now. */
  async makeDue(tx: Tx, orderId: string): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE orders SET next_attempt_at = now() WHERE id = $1 AND status IN ('pending', 'processing', 'canceling')`,
      [orderId],
    );
    return affected === 1;
  }

  /** Ends a cancellation that the provider accepted: `canceled` eSIMs, all that were left, have come back. */
  async markCanceled(tx: Tx, lease: OrderLease, canceled: number): Promise<boolean> {
    const refund =
      'refunded_amount = refunded_amount + unit_price_amount * $4::int, status_before_cancel = NULL';
    return this.finish(tx, lease, 'canceled', refund, [canceled], 'canceling');
  }

  /** Ends a cancellation that took only some eSIMs back, or none: the order is back where it was (D22). */
  async markCancelRefused(
    tx: Tx,
    lease: OrderLease,
    before: OrderStatus,
    outcome: { readonly canceled: number; readonly failure: ProviderFailure },
  ): Promise<boolean> {
    return this.finish(
      tx,
      lease,
      before,
      `refunded_amount = refunded_amount + unit_price_amount * $4::int,
       cancel_failure_code = $5, cancel_failure_reason = $6, status_before_cancel = NULL`,
      [outcome.canceled, outcome.failure.code, outcome.failure.reason],
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
      `UPDATE orders SET status = $3, next_attempt_at = NULL, lease_until = NULL, cancel_requested_at = NULL,
         last_error = NULL, updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status = '${from}'`,
      [lease.orderId, lease.fence, to, ...parameters],
    );
    return affected === 1;
  }
}
