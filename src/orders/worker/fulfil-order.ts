import { Injectable } from '@nestjs/common';
import { Transactions } from '../../infra/database/index.js';
import {
  callProvider,
  type EsimProvider,
  type Placement,
  type ProviderFailure,
  type ProviderOrderState,
  ProviderRegistry,
  ProviderUnavailable,
  retryDelayMs,
} from '../../providers/index.js';
import { CompleteOrder, type Provisioned } from '../complete-order.js';
import { type ClaimedOrder, OrderJobsRepository } from '../order-jobs.repository.js';
import { type OrderEntity, toProviderOrderRequest } from '../order.js';

/**
 * Gets the provider's answer to an order without ever buying it twice. The claim records that the first placement may
 * be sent; once one may have been, the order is looked for before it is placed again, and only a denial that outlives
 * the read lag is believed (D19, D22).
 */
@Injectable()
export class FindOrPlaceOrder {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly jobs: OrderJobsRepository,
  ) {}

  /**
   * Null when the lease is void: then nothing was sent.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  async execute(claimed: ClaimedOrder, order: OrderEntity): Promise<ProviderOrderState | null> {
    const provider = this.providers.getByName(order.provider);
    if (claimed.neverPlaced) return this.place(provider, claimed, order, 'first', claimed.sendWindowStart);
    const request = toProviderOrderRequest(order);
    const found = await callProvider(provider, (signal) => provider.findOrder(request, signal));
    if (found) return found;
    const slot = await this.jobs.markPlaced(claimed, provider.readLagMs);
    if (slot === null) return null;
    if (slot.waitMs === 0) return this.place(provider, claimed, order, 'again', slot.sendWindowStart);
    // It may turn up before the whole lag is over.
    const checkAfterMs = Math.min(slot.waitMs, retryDelayMs(order.upstreamAttempts));
    return { state: 'in_progress', checkAfterMs };
  }

  private async place(
    provider: EsimProvider,
    claimed: ClaimedOrder,
    order: OrderEntity,
    placement: Placement,
    sendWindowStart: number,
  ): Promise<ProviderOrderState> {
    try {
      const request = toProviderOrderRequest(order);
      return await callProvider(
        provider,
        (signal) => provider.placeOrder(request, placement, signal),
        sendWindowStart,
      );
    } catch (error) {
      // It may have been bought: the read lag begins now, and the next attempt asks before it buys.
      if (!(error instanceof ProviderUnavailable)) await this.jobs.touchPlacement(claimed);
      else if (placement === 'first') await this.jobs.clearPlacement(claimed, null);
      throw error;
    }
  }
}

const NOTHING_PROVISIONED: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The upstream ended the order without an eSIM.',
};

/**
 * Takes a processing order to its outcome: provider calls outside any transaction, then one transaction with the
 * order's status, its money, its eSIMs and its event. Killed anywhere, it is done again with the same reference (D19,
 * D22).
 */
@Injectable()
export class FulfilOrder {
  constructor(
    private readonly findOrPlace: FindOrPlaceOrder,
    private readonly jobs: OrderJobsRepository,
    private readonly complete: CompleteOrder,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays processing. */
  async execute(claimed: ClaimedOrder, order: OrderEntity): Promise<void> {
    const result = await this.findOrPlace.execute(claimed, order);
    switch (result?.state) {
      case undefined:
        return;
      case 'in_progress':
        return this.jobs.postpone(claimed, result.checkAfterMs);
      case 'rejected':
        return this.fail(claimed, order, result.failure);
      case 'provisioned':
        if (result.profiles.length > 0) return this.issue(claimed, order, result);
        return this.fail(claimed, order, result.shortfall ?? NOTHING_PROVISIONED);
    }
  }

  private async issue(claimed: ClaimedOrder, order: OrderEntity, result: Provisioned): Promise<void> {
    await this.transactions.run((tx) => this.complete.issue(tx, claimed, order, result));
  }

  private async fail(claimed: ClaimedOrder, order: OrderEntity, failure: ProviderFailure): Promise<void> {
    await this.transactions.run((tx) => this.complete.fail(tx, claimed, order, failure));
  }
}
