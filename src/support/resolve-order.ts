import { Injectable } from '@nestjs/common';
import { Alerts } from '../alerts/index.js';
import { AuditLog } from '../audit/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, WorkerNotifier } from '../infra/jobs/index.js';
import {
  type CancelOutcome,
  CompleteCancellation,
  CompleteOrder,
  ORDER_JOBS,
  type OrderEntity,
  OrderJobsRepository,
  OrdersRepository,
} from '../orders/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { AcquiredLease } from '../purchases/index.js';
import type { InspectedOrder } from './inspect-provider-order.js';
import {
  type CancelingSnapshot,
  conflict,
  type OrderOutcomeAction,
  orderRefusal,
  type ProcessingSnapshot,
  type ProviderSnapshot,
} from './resolution-rules.js';
import { ResolvePurchase } from './resolve-purchase.js';

/** Shown to the partner; support's own findings are in the note. */
const UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The wholesaler did not confirm the order.',
};
const PARTLY_UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The wholesaler did not confirm every eSIM of the order.',
};
const NOT_TAKEN_BACK: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The wholesaler did not cancel the order.',
};

@Injectable()
export class ResolveOrder extends ResolvePurchase<OrderEntity, OrderOutcomeAction, InspectedOrder> {
  constructor(
    orders: OrdersRepository,
    jobs: OrderJobsRepository,
    private readonly complete: CompleteOrder,
    private readonly completeCancellation: CompleteCancellation,
    alerts: Alerts,
    audit: AuditLog,
    @InjectNotifier(ORDER_JOBS) notifier: WorkerNotifier,
  ) {
    super(orders, jobs, alerts, audit, notifier);
  }

  protected override refusalOf(
    action: OrderOutcomeAction,
    order: OrderEntity,
    { snapshot }: InspectedOrder,
  ): string | null {
    return orderRefusal(action, order, snapshot);
  }

  protected override detailsOf({ snapshot }: InspectedOrder): Readonly<Record<string, string>> {
    return { upstream: summaryOf(snapshot) };
  }

  protected override end(
    tx: Tx,
    lease: AcquiredLease,
    order: OrderEntity,
    action: OrderOutcomeAction,
    { snapshot }: InspectedOrder,
  ): Promise<boolean> {
    return snapshot.orderStatus === 'processing'
      ? this.endProvisioning(tx, lease, order, action, snapshot)
      : this.endCancellation(tx, lease, order, action, snapshot);
  }

  /**
   * Marks the order issued with its existing profiles, or failed. Missing parts count as failed only after the read
   * lag.
   */
  private async endProvisioning(
    tx: Tx,
    lease: AcquiredLease,
    order: OrderEntity,
    action: OrderOutcomeAction,
    { parts }: ProcessingSnapshot,
  ): Promise<boolean> {
    const { profiles, failure } = parts ?? { profiles: [], failure: null };
    const isComplete = profiles.length >= order.quantity;
    if (action === 'mark_failed' || !isComplete) refuseTooEarly(lease.lagLeftMs);
    const shortfall = isComplete ? null : (failure ?? PARTLY_UNCONFIRMED);
    const result =
      action === 'mark_failed'
        ? ({ state: 'rejected', failure: failure ?? UNCONFIRMED } as const)
        : ({ state: 'provisioned', profiles, shortfall } as const);
    return this.complete.complete(tx, { lease, order, result });
  }

  /**
   * Issued: the order stays with the partner, except eSIMs that the provider has canceled. Failed: the order is
   * canceled as a whole and refunded.
   */
  private async endCancellation(
    tx: Tx,
    lease: AcquiredLease,
    order: OrderEntity,
    action: OrderOutcomeAction,
    snapshot: CancelingSnapshot,
  ): Promise<boolean> {
    // The effect of a recent cancellation call may not be visible yet.
    if (action === 'mark_issued') refuseTooEarly(lease.lagLeftMs);
    const isCanceled = action === 'mark_failed' ? () => true : seenCanceled(snapshot);
    const outcome = { isCanceled, failure: NOT_TAKEN_BACK };
    const status = await this.completeCancellation.complete(tx, lease, order, outcome);
    if (action === 'mark_failed' && status !== null && status !== 'canceled')
      throw conflict('No eSIM of the order can be canceled any more. Mark the order issued.');
    return status !== null;
  }
}

function seenCanceled({ cancelStatuses }: CancelingSnapshot): CancelOutcome['isCanceled'] {
  const canceled = (cancelStatuses ?? []).filter(({ cancelStatus }) => cancelStatus === 'canceled');
  const ids = new Set(canceled.map(({ providerEsimId }) => providerEsimId));
  return (esim) => ids.has(esim.providerEsimId);
}

/** @throws AppError `conflict` while the provider may not show the effect of the last call yet */
function refuseTooEarly(lagLeftMs: number): void {
  if (lagLeftMs <= 0) return;
  const seconds = Math.ceil(lagLeftMs / 1_000);
  throw conflict(`The wholesaler may not show the result of the last call yet. Try again in ${seconds} s.`);
}

/** Counts of the provider's state for the audit log. */
function summaryOf(snapshot: ProviderSnapshot): string {
  if (snapshot.orderStatus === 'canceling')
    return snapshot.cancelStatuses?.map(({ cancelStatus }) => cancelStatus).join(', ') ?? 'no answer';
  if (snapshot.parts === null) return 'no answer';
  const { profiles, running, unusable } = snapshot.parts;
  return `${profiles.length} provisioned, ${running} running, ${unusable} unusable`;
}
