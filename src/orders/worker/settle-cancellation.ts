import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { type EsimEntity, EsimsRepository, isUntouched } from '../../esims/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { callProvider, type ProviderFailure, ProviderRegistry } from '../../providers/index.js';
import { Wallet } from '../../wallet/index.js';
import { priceOf } from '../end-order.js';
import type { OrderEntity } from '../order.entity.js';
import { OrderEndingsRepository } from '../order-endings.repository.js';
import { uncanceled } from '../order-esims.js';
import type { OrderLease } from '../order-queue.repository.js';

/** The upstream's word in one shape: which eSIMs it took back, and why not the others. */
interface CancelOutcome {
  readonly isCanceled: (esim: EsimEntity) => boolean;
  readonly failure: ProviderFailure;
}

/**
 * Puts a cancellation to the upstream and records its word: canceled and refunded, or back where it was (D22). What
 * it took back of an order that it did not take back as a whole is canceled and refunded too.
 */
@Injectable()
export class SettleCancellation {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly providers: ProviderRegistry,
    private readonly endings: OrderEndingsRepository,
    private readonly esims: EsimsRepository,
    private readonly wallet: Wallet,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays canceling. */
  async execute(lease: OrderLease, order: OrderEntity): Promise<void> {
    const esims = uncanceled(await this.esims.listByOrders(this.manager, [order.id]));
    // A call of an earlier attempt may have taken some back: only the upstream knows.
    const mayHaveLeft = order.upstreamAttempts > 1;
    const outcome =
      mayHaveLeft || esims.every(isUntouched) ? await this.askProvider(order, esims) : NONE_IN_USE;
    await this.transactions.run((tx) => this.record(tx, lease, order, outcome));
  }

  private async askProvider(order: OrderEntity, esims: readonly EsimEntity[]): Promise<CancelOutcome> {
    const provider = this.providers.getByName(order.provider);
    const request = {
      reference: order.providerReference,
      quantity: order.quantity,
      esims: esims.map(({ providerEsimId, iccid, createdAt }) => ({
        providerEsimId,
        iccid,
        issuedAt: createdAt,
      })),
    };
    const result = await callProvider(provider, (signal) => provider.cancelOrder(request, signal));
    switch (result.state) {
      case 'canceled':
        // The device of a sandbox eSIM acts in our own store, where its upstream does not look.
        return order.mode === 'sandbox'
          ? { isCanceled: isUntouched, failure: IN_USE }
          : { isCanceled: () => true, failure: IN_USE };
      case 'refused':
        return { isCanceled: () => false, failure: result.failure };
      case 'partly_canceled': {
        const ids = new Set(result.canceledEsimIds);
        return { isCanceled: (esim) => ids.has(esim.providerEsimId), failure: result.failure };
      }
    }
  }

  /** Locks the order, then its eSIMs, then the wallet (D40). */
  private async record(tx: Tx, lease: OrderLease, order: OrderEntity, outcome: CancelOutcome): Promise<void> {
    if (!(await this.endings.holds(tx, lease))) return;
    const esims = uncanceled(await this.esims.listByOrderForUpdate(tx, order.id));
    const canceled = esims.filter(outcome.isCanceled);
    const whole = canceled.length > 0 && canceled.length === esims.length;
    // A sandbox order is taken back as a whole or not at all: what a customer uses is not taken back.
    const taken = order.mode === 'sandbox' && !whole ? [] : canceled;
    const ended = whole
      ? await this.endings.markCanceled(tx, lease, taken.length)
      : await this.endings.markCancelRefused(tx, lease, order.statusBeforeCancel ?? 'issued', {
          canceled: taken.length,
          failure: outcome.failure,
        });
    if (!ended || taken.length === 0) return;
    for (const esim of taken) await this.esims.update(tx, esim.id, { status: 'canceled' });
    const { amount } = priceOf(order, taken.length);
    await this.wallet.refund(tx, { mode: order.mode, subject: { orderId: order.id }, amount });
  }
}

const IN_USE: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'An eSIM of the order was installed or has ended meanwhile.',
};

const NONE_IN_USE: CancelOutcome = { isCanceled: () => false, failure: IN_USE };
