import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import {
  type CancelOutcome,
  CompleteCancellation,
  CompleteOrder,
  ORDER_JOBS,
  type OrderEntity,
  OrderJobsRepository,
  OrdersRepository,
  type OrderVersion,
} from '../orders/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { InspectedOrder } from './inspect-provider-order.js';
import {
  type CancelingSnapshot,
  conflict,
  orderNotWaiting,
  type OrderOutcomeAction,
  orderRefusal,
  type ProcessingSnapshot,
  type ProviderSnapshot,
  type ResolveOrderAction,
} from './resolution-rules.js';

export interface ResolveOrderCommand {
  readonly orderId: string;
  readonly action: ResolveOrderAction;
  readonly note: string;
  /** What the provider showed a moment ago; null allows `requery` only. */
  readonly inspected: InspectedOrder | null;
}

/** Said to the partner; what support knows is in the note. */
const UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm the order.',
};
const PARTLY_UNCONFIRMED: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not confirm every eSIM of the order.',
};
const NOT_TAKEN_BACK: ProviderFailure = {
  code: 'provider_unavailable',
  reason: 'The upstream did not take the order back.',
};

/**
 * Support's decision on an order that does not settle by itself (D22). It acquires the lease with a higher fence, so
 * that of a worker and support only one can complete the order.
 */
@Injectable()
export class ResolveOrder {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly jobs: OrderJobsRepository,
    private readonly complete: CompleteOrder,
    private readonly completeCancellation: CompleteCancellation,
    private readonly audit: AuditLog,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** @throws NotFound, AppError `conflict` when the order's state, or what the provider shows, does not allow it */
  async execute(tx: Tx, by: ChangeAuthor, command: ResolveOrderCommand): Promise<OrderEntity> {
    const { orderId, action, note, inspected } = command;
    const order = await this.orders.findByIdForUpdate(tx, orderId);
    if (!order) throw new NotFound();
    await this.perform(tx, order, command);
    await this.audit.record(tx, {
      ...by,
      action: 'order.reconciled',
      partnerId: order.partnerId,
      subjectId: orderId,
      details: { action, note, ...(inspected ? { upstream: summaryOf(inspected.snapshot) } : {}) },
    });
    return (await this.orders.findByIdForUpdate(tx, orderId))!;
  }

  private async perform(
    tx: Tx,
    order: OrderEntity,
    { action, inspected }: ResolveOrderCommand,
  ): Promise<void> {
    if (action === 'requery') return this.requery(tx, order);
    if (!inspected) throw orderNotWaiting();
    const { version, snapshot } = inspected;
    const refusal = orderRefusal(action, order, snapshot);
    if (refusal !== null) throw conflict(refusal);
    switch (snapshot.orderStatus) {
      case 'processing':
        return this.resolveProvisioning(tx, order, action, version, snapshot);
      case 'canceling':
        return this.resolveCancellation(tx, order, action, version, snapshot);
    }
  }

  private async requery(tx: Tx, order: OrderEntity): Promise<void> {
    if (!(await this.jobs.makeOneDue(tx, order.id))) throw orderNotWaiting();
    tx.afterCommit(() => this.notifier.notify(partnerGroup(order)));
  }

  /** Issued with what there is of it, or failed. Nothing that is missing is given up before the provider must show it. */
  private async resolveProvisioning(
    tx: Tx,
    order: OrderEntity,
    action: OrderOutcomeAction,
    version: OrderVersion,
    { parts }: ProcessingSnapshot,
  ): Promise<void> {
    const lease = await this.jobs.acquireLease(tx, order.id, version);
    if (!lease) throw orderNotWaiting();
    const { profiles, failure } = parts ?? { profiles: [], failure: null };
    const isComplete = profiles.length >= order.quantity;
    if (action === 'mark_failed' || !isComplete) refuseTooEarly(lease.lagLeftMs);
    const shortfall = isComplete ? null : (failure ?? PARTLY_UNCONFIRMED);
    const result =
      action === 'mark_failed'
        ? ({ state: 'rejected', failure: failure ?? UNCONFIRMED } as const)
        : ({ state: 'provisioned', profiles, shortfall } as const);
    if (!(await this.complete.execute(tx, { lease, order, result }))) throw orderNotWaiting();
  }

  /**
   * Issued: the order stays with the partner, but for what the provider took back of it. Failed: it is taken back as a
   * whole, and refunded.
   */
  private async resolveCancellation(
    tx: Tx,
    order: OrderEntity,
    action: OrderOutcomeAction,
    version: OrderVersion,
    snapshot: CancelingSnapshot,
  ): Promise<void> {
    const lease = await this.jobs.acquireLease(tx, order.id, version);
    if (!lease) throw orderNotWaiting();
    // What a call of a moment ago took back may not show yet.
    if (action === 'mark_issued') refuseTooEarly(lease.lagLeftMs);
    const isCanceled = action === 'mark_failed' ? () => true : seenCanceled(snapshot);
    const outcome = { isCanceled, failure: NOT_TAKEN_BACK };
    const status = await this.completeCancellation.execute(tx, lease, order, outcome);
    if (status === null) throw orderNotWaiting();
    if (action === 'mark_failed' && status !== 'canceled')
      throw conflict('No eSIM of the order is left that could be taken back: mark it issued.');
  }
}

function seenCanceled({ cancelStatuses }: CancelingSnapshot): CancelOutcome['isCanceled'] {
  const canceled = (cancelStatuses ?? []).filter(({ cancelStatus }) => cancelStatus === 'canceled');
  const ids = new Set(canceled.map(({ providerEsimId }) => providerEsimId));
  return (esim) => ids.has(esim.providerEsimId);
}

/** @throws AppError `conflict` while the provider may still deny what the last call did */
function refuseTooEarly(lagLeftMs: number): void {
  if (lagLeftMs <= 0) return;
  const seconds = Math.ceil(lagLeftMs / 1_000);
  throw conflict(
    `The upstream was called a moment ago and may not show yet what that did: try again in ${seconds} s.`,
  );
}

/** What the provider showed, in counts, for the audit log. */
function summaryOf(snapshot: ProviderSnapshot): string {
  if (snapshot.orderStatus === 'canceling')
    return snapshot.cancelStatuses?.map(({ cancelStatus }) => cancelStatus).join(', ') ?? 'no answer';
  if (snapshot.parts === null) return 'no answer';
  const { profiles, running, unusable } = snapshot.parts;
  return `${profiles.length} provisioned, ${running} running, ${unusable} unusable`;
}
