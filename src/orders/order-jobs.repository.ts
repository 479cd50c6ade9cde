import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';
import { Tracer } from '../infra/tracing/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { PurchaseJobsRepository, type PurchaseLease } from '../purchases/index.js';
import { type OrderEntity, ORDERS, type OrderStatus, statusesBefore } from './order.js';

/** BullMQ queue that wakes workers for orders; a group is a partner and a mode, and groups take turns (D27, D41). */
export const ORDER_JOBS = 'order-jobs';

export const OrderNotifierModule = notifierModule(ORDER_JOBS);

/** Refunds the part that was not issued. */
const END_ASSIGNMENTS = `
  status = CASE h.fulfilled WHEN 0 THEN 'failed' WHEN p.quantity THEN 'issued' ELSE 'partially_issued' END,
  quantity_issued = h.fulfilled, quantity_failed = p.quantity - h.fulfilled,
  refunded_amount = p.unit_price_amount * (p.quantity - h.fulfilled),
  issued_at = CASE WHEN h.fulfilled > 0 THEN now() END, cancel_requested_at = NULL`;

/** Changes at the end of a cancellation. */
interface CancellationEnd {
  readonly status: OrderStatus;
  /** The amount that the cancellation refunds. */
  readonly refunded: number;
  /** Why the others were not canceled; null when all were. */
  readonly failure: ProviderFailure | null;
}

/** The order after its cancellation has ended. */
export interface EndedCancellation {
  readonly version: number;
  /** Everything that was released or refunded, in minor units. */
  readonly refundedAmount: number;
}

/** SQL for claims, leases, placements and results in `orders`. The claim records the first placement. */
@Injectable()
export class OrderJobsRepository extends PurchaseJobsRepository<OrderEntity> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
    tracer: Tracer,
  ) {
    const sqlParts = { claimRecordsPlacement: true, endAssignments: END_ASSIGNMENTS };
    super(manager, ORDERS, { ...sqlParts, leaseMs, notifier, tracer });
  }

  /** Locks the order for `tx`. Orders are locked before their eSIMs (D40). */
  async lockIfHeld(tx: Tx, lease: PurchaseLease): Promise<boolean> {
    const { rows } = await sql(tx.manager, 'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE', [
      lease.id,
      lease.fence,
    ]);
    return rows.length > 0;
  }

  /**
   * Ends a cancellation: canceled, or restored to the status before (D22). Returns null when the lease is void: then
   * nothing may be written.
   */
  async endCancellation(
    tx: Tx,
    lease: PurchaseLease,
    { status, refunded, failure }: CancellationEnd,
  ): Promise<EndedCancellation | null> {
    if (!statusesBefore(status).includes('canceling'))
      throw new Error(`a cancellation cannot end in ${status}`);
    const { rows } = await sql<{ version: number; refunded_amount: string }>(
      tx.manager,
      `UPDATE orders SET status = $3, next_attempt_at = NULL, lease_until = NULL, cancel_requested_at = NULL,
         last_error = NULL, updated_at = now(), refunded_amount = refunded_amount + $4::bigint,
         cancel_failure_code = $5, cancel_failure_reason = $6, status_before_cancel = NULL
       WHERE id = $1 AND fence = $2 AND status = 'canceling'
       RETURNING version, refunded_amount`,
      [lease.id, lease.fence, status, refunded, failure?.code ?? null, failure?.reason ?? null],
    );
    const [row] = rows;
    return row ? { version: row.version, refundedAmount: toSafeInteger(row.refunded_amount) } : null;
  }
}
