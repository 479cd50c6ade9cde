import { Injectable } from '@nestjs/common';
import { type EsimEntity, EsimsRepository } from '../esims/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import { type OrderEntity, priceOf, uncanceled } from './order.js';
import type { OrderLease } from './order-jobs.repository.js';
import { OrderOutcomesRepository } from './order-outcomes.repository.js';

/** The provider's answer, or support's decision, in one shape: which eSIMs were taken back, and why not the others. */
export interface CancelOutcome {
  readonly isCanceled: (esim: EsimEntity) => boolean;
  readonly failure: ProviderFailure;
}

/**
 * Records the outcome of a cancellation in one transaction: canceled and refunded, or back where it was (D22). What was
 * taken back of an order that was not taken back as a whole is canceled and refunded too. No event tells of it.
 */
@Injectable()
export class CompleteCancellation {
  constructor(
    private readonly outcomes: OrderOutcomesRepository,
    private readonly esims: EsimsRepository,
    private readonly wallet: Wallet,
  ) {}

  /**
   * Locks the order, then its eSIMs, then the wallet (D40). Answers the status that it ended in; null when the lease
   * is void, and then nothing was written.
   */
  async execute(
    tx: Tx,
    lease: OrderLease,
    order: OrderEntity,
    outcome: CancelOutcome,
  ): Promise<OrderEntity['status'] | null> {
    if (!(await this.outcomes.lockIfHeld(tx, lease))) return null;
    const esims = uncanceled(await this.esims.listByOrderForUpdate(tx, order.id));
    const canceled = esims.filter(outcome.isCanceled);
    const whole = canceled.length > 0 && canceled.length === esims.length;
    // A sandbox order is taken back as a whole or not at all: what a customer uses is not taken back.
    const taken = order.mode === 'sandbox' && !whole ? [] : canceled;
    const status = whole ? 'canceled' : (order.statusBeforeCancel ?? 'issued');
    const ended = whole
      ? await this.outcomes.markCanceled(tx, lease, taken.length)
      : await this.outcomes.markCancelRefused(tx, lease, status, {
          canceled: taken.length,
          failure: outcome.failure,
        });
    if (!ended) return null;
    await this.giveBack(tx, order, taken);
    return status;
  }

  private async giveBack(tx: Tx, order: OrderEntity, taken: readonly EsimEntity[]): Promise<void> {
    if (taken.length === 0) return;
    for (const esim of taken) await this.esims.update(tx, esim.id, { status: 'canceled' });
    const { amount } = priceOf(order, taken.length);
    await this.wallet.refund(tx, { mode: order.mode, subject: { orderId: order.id }, amount });
  }
}
