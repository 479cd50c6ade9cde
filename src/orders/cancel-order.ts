import { Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { canCancel, type EsimEntity, EsimsRepository } from '../esims/index.js';
import { EventRecorder } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { type PurchaseLease, returnedSpending } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import { type EndedCancellation, ORDER_JOBS, OrderJobsRepository } from './order-jobs.repository.js';
import { canceledWith, type OrderEntity, refundableOf, uncanceled } from './order.js';
import { StartReplacement } from './start-replacement.js';
import { OrdersRepository } from './orders.repository.js';

/** Requests a cancellation. The worker calls the provider, whose result decides (D22, Cancel). */
@Injectable()
export class CancelOrder {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /**
   * @throws NotFound, AppError `order_not_cancelable` unless it is issued, nothing was downloaded and nothing topped up
   */
  async cancel(tx: Tx, scope: TenantScope, orderId: string): Promise<OrderEntity> {
    const order = await this.orders.findForUpdate(tx, scope, orderId);
    if (!order) throw new NotFound();
    await this.esims.listByOrderForUpdate(tx, orderId);
    const situation = (await this.esims.listSituations(tx.manager, [orderId])).get(orderId);
    if (!situation || !canCancel(situation)) throw new AppError('order_not_cancelable');
    return this.begin(tx, scope, order);
  }

  /** Starts the cancellation of an order whose row `tx` has locked, or of the eSIM of it that is being replaced. */
  async begin(tx: Tx, scope: TenantScope, order: OrderEntity): Promise<OrderEntity> {
    const now = await databaseNow(tx);
    const changes = {
      status: 'canceling',
      statusBeforeCancel: order.status,
      cancelFailureCode: null,
      cancelFailureReason: null,
      cancelRequestedAt: now,
      attempts: 0,
      lastError: null,
      nextAttemptAt: now,
      updatedAt: now,
    } as const;
    const version = await this.orders.update(tx, order.id, changes);
    tx.afterCommit(() => this.notifier.notify(partnerGroup(scope)));
    return Object.assign(order, changes, { version });
  }
}

/** The provider's result, or support's decision: which eSIMs were canceled, and why the others were not. */
export interface CancelOutcome {
  readonly isCanceled: (esim: EsimEntity) => boolean;
  readonly failure: ProviderFailure;
}

/**
 * Records a cancellation's outcome in one transaction: canceled and refunded, or restored to the status before. In a
 * partial cancellation the canceled eSIMs are refunded too; only a whole one is an `order.canceled`.
 */
@Injectable()
export class CompleteCancellation {
  constructor(
    private readonly jobs: OrderJobsRepository,
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly wallet: Wallet,
    private readonly replacements: StartReplacement,
    private readonly events: EventRecorder,
  ) {}

  /**
   * Locks the order, then its eSIMs, then the wallet (D40). Returns the final status; null when the lease is void, and
   * then nothing was written.
   */
  async complete(
    tx: Tx,
    lease: PurchaseLease,
    order: OrderEntity,
    outcome: CancelOutcome,
  ): Promise<OrderEntity['status'] | null> {
    if (!(await this.jobs.lockIfHeld(tx, lease))) return null;
    const all = await this.esims.listByOrderForUpdate(tx, order.id);
    const esims = canceledWith(all);
    const canceled = esims.filter(outcome.isCanceled);
    const whole = canceled.length > 0 && canceled.length === esims.length;
    // A sandbox order is canceled as a whole or not at all: eSIMs in use are never canceled.
    const taken = order.mode === 'sandbox' && !whole ? [] : canceled;
    const isAll = whole && esims.length === uncanceled(all).length;
    const status = isAll ? 'canceled' : (order.statusBeforeCancel ?? 'issued');
    const failure = whole ? null : outcome.failure;
    const refunds = await this.orders.listRefunds(tx.manager, [order.id]);
    const refunded = taken.reduce((sum, esim) => sum + refundableOf(order, esim, refunds), 0);
    const ended = await this.jobs.endCancellation(tx, lease, { status, refunded, failure });
    if (!ended) return null;
    await this.giveBack(tx, order, taken, refunded);
    for (const esim of esims) {
      if (esim.replacedBy === null) continue;
      if (taken.includes(esim)) await this.replacements.start(tx, esim.replacedBy);
      else await this.replacements.fail(tx, esim, outcome.failure);
    }
    if (status === 'canceled') await this.report(tx, order, ended);
    return status;
  }

  private async report(
    tx: Tx,
    order: OrderEntity,
    { version, refundedAmount }: EndedCancellation,
  ): Promise<void> {
    const { id, partnerId, mode, reference, packageId, currency } = order;
    const refunded = { amount: refundedAmount, currency };
    const data = { order_id: id, reference, package_id: packageId, refunded, version };
    const happenedAt = await databaseNow(tx);
    await this.events.record(tx, [{ type: 'order.canceled', partnerId, mode, happenedAt, data }]);
  }

  private async giveBack(
    tx: Tx,
    order: OrderEntity,
    taken: readonly EsimEntity[],
    amount: number,
  ): Promise<void> {
    if (taken.length === 0) return;
    for (const esim of taken)
      await this.esims.update(tx, esim.id, { status: 'canceled', pendingAction: null });
    const subject = { orderId: order.id };
    // The replacement spends the same amount, and counts for no key.
    const isHeldAgain = taken[0]!.replacedBy !== null;
    const returned = isHeldAgain ? null : returnedSpending(order, amount);
    await this.wallet.refund(tx, { mode: order.mode, subject, amount, returned, isHeldAgain });
  }
}
