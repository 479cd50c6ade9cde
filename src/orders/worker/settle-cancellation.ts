import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { type EsimEntity, EsimsRepository, isUntouched } from '../../esims/index.js';
import { Transactions } from '../../infra/database/index.js';
import { callProvider, type ProviderFailure, ProviderRegistry } from '../../providers/index.js';
import type { ClaimedPurchase } from '../../purchases/index.js';
import { type CancelOutcome, CompleteCancellation } from '../cancel-order.js';
import { canceledWith, type OrderEntity, toProviderCancelRequest } from '../order.js';

const IN_USE: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'An eSIM of the order was installed or ended before the cancellation.',
};

const NONE_IN_USE: CancelOutcome = { isCanceled: () => false, failure: IN_USE };

/** Cancels at the provider and records the result (D22). */
@Injectable()
export class SettleCancellation {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly providers: ProviderRegistry,
    private readonly esims: EsimsRepository,
    private readonly complete: CompleteCancellation,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays canceling */
  async settle(claimed: ClaimedPurchase<OrderEntity>): Promise<void> {
    const { purchase: order } = claimed;
    const esims = canceledWith(await this.esims.listByOrders(this.manager, [order.id]));
    // An earlier attempt may have canceled some eSIMs. Only the provider knows.
    const mayHaveLeft = order.attempts > 1;
    const outcome =
      mayHaveLeft || esims.every(isUntouched)
        ? await this.askProvider(order, esims, claimed.sendWindowStart)
        : NONE_IN_USE;
    await this.transactions.run((tx) => this.complete.complete(tx, claimed, order, outcome));
  }

  /**
   * The call is sent soon after the claim or never, because support may meanwhile have ended the cancellation and
   * resold the eSIMs.
   */
  private async askProvider(
    order: OrderEntity,
    esims: readonly EsimEntity[],
    sendWindowStart: number,
  ): Promise<CancelOutcome> {
    const provider = this.providers.getByName(order.provider);
    const request = toProviderCancelRequest(order, esims);
    const result = await callProvider(
      provider,
      (signal) => provider.cancelOrder(request, signal),
      sendWindowStart,
    );
    switch (result.state) {
      case 'canceled':
        // A sandbox eSIM's device lives in our own database, which its provider does not read.
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
}
