import { Injectable } from '@nestjs/common';
import { AppError } from '../common/errors/index.js';
import { type EsimEntity, EsimsRepository } from '../esims/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import { CompleteOrder } from './complete-order.js';
import { ORDER_JOBS } from './order-jobs.repository.js';
import { type OrderEntity, priceOf } from './order.js';
import { OrdersRepository } from './orders.repository.js';

const NOT_COVERED: ProviderFailure = {
  code: 'insufficient_balance',
  reason: 'The wallet does not cover the price.',
};

/**
 * Decides about the order that replaces an eSIM, in the transaction that records whether the eSIM was canceled (D70). The
 * refund of the eSIM pays for the order. The two are one transaction, so that neither two eSIMs are paid, nor none.
 */
@Injectable()
export class StartReplacement {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly esims: EsimsRepository,
    private readonly wallet: Wallet,
    private readonly complete: CompleteOrder,
    @InjectNotifier(ORDER_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  /** The eSIM was canceled and refunded in `tx`: holds the price, and makes the order due. */
  async start(tx: Tx, orderId: string): Promise<void> {
    const order = await this.waiting(tx, orderId);
    const { partnerId, mode } = order;
    try {
      await this.wallet.hold(tx, { partnerId, mode, money: priceOf(order, 1), subject: { orderId } });
    } catch (error) {
      // Only after an adjustment below zero. The refund stays with the partner.
      if (!(error instanceof AppError && error.code === 'insufficient_balance')) throw error;
      return this.end(tx, order, NOT_COVERED);
    }
    await this.orders.update(tx, orderId, { nextAttemptAt: await databaseNow(tx) });
    tx.afterCommit(() => this.notifier.notify(partnerGroup(order)));
  }

  /** The eSIM was not canceled: it stays, and the order fails and costs nothing. */
  async fail(tx: Tx, esim: EsimEntity, failure: ProviderFailure): Promise<void> {
    await this.end(tx, await this.waiting(tx, esim.replacedBy!), failure);
    const { code, reason } = failure;
    const actionFailure = { action: 'replace', code, reason } as const;
    await this.esims.update(tx, esim.id, { pendingAction: null, replacedBy: null, actionFailure });
  }

  private async waiting(tx: Tx, orderId: string): Promise<OrderEntity> {
    const order = await this.orders.findByIdForUpdate(tx, orderId);
    if (order?.status !== 'pending' || order.nextAttemptAt !== null)
      throw new Error(`order ${orderId} does not wait for an eSIM to be canceled`);
    return order;
  }

  private async end(tx: Tx, order: OrderEntity, failure: ProviderFailure): Promise<void> {
    await this.orders.update(tx, order.id, { status: 'processing' });
    await this.complete.complete(tx, { lease: order, order, result: { state: 'rejected', failure } });
  }
}
