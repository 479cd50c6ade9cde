import { Injectable } from '@nestjs/common';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { type OrderStatus, statusesBefore } from './order.js';
import type { OrderLease } from './order-jobs.repository.js';

/**
 * SQL that records the outcome of what a worker, or support, works on in `orders`. Every write is guarded by the lease's fence and the
 * status; false means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class OrderOutcomesRepository {
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
  async lockIfHeld(tx: Tx, lease: OrderLease): Promise<boolean> {
    const { rows } = await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE', [
      lease.orderId,
      lease.fence,
    ]);
    return rows.length > 0;
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
