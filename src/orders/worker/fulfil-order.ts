import { Injectable } from '@nestjs/common';
import {
  callProvider,
  type EsimProvider,
  type Placement,
  type ProviderOrderState,
  ProviderRegistry,
  ProviderUnavailable,
  retryDelayMs,
} from '../../providers/index.js';
import { currentTraceparent } from '../../infra/tracing/index.js';
import { type ClaimedOrder, OrderJobsRepository } from '../order-jobs.repository.js';
import { toProviderOrderRequest } from '../order.js';
import { OrderEnds } from './order-ends.js';

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
  async execute(claimed: ClaimedOrder): Promise<ProviderOrderState | null> {
    const { order } = claimed;
    const provider = this.providers.findByName(order.provider);
    if (!provider) {
      if (claimed.neverPlaced) await this.jobs.clearPlacement(claimed, null);
      throw new Error(`no provider is called ${order.provider}`);
    }
    if (claimed.neverPlaced) return this.place(provider, claimed, 'first', claimed.sendWindowStart);
    const request = toProviderOrderRequest(order);
    const found = await callProvider(provider, (signal) => provider.findOrder(request, signal));
    if (found) return found;
    const slot = await this.jobs.markPlaced(claimed, provider.readLagMs);
    if (slot === null) return null;
    if (slot.waitMs === 0) return this.place(provider, claimed, 'again', slot.sendWindowStart);
    // It may turn up before the whole lag is over.
    const checkAfterMs = Math.min(slot.waitMs, retryDelayMs(order.upstreamAttempts));
    return { state: 'in_progress', checkAfterMs };
  }

  private async place(
    provider: EsimProvider,
    claimed: ClaimedOrder,
    placement: Placement,
    sendWindowStart: number,
  ): Promise<ProviderOrderState> {
    try {
      const request = toProviderOrderRequest(claimed.order);
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

/**
 * Takes a processing order to its outcome: provider calls outside any transaction, then one transaction with the
 * order's status, its money, its eSIMs and its event, and those of other orders that end now. Killed anywhere, it is
 * done again with the same reference (D19, D22).
 */
@Injectable()
export class FulfilOrder {
  constructor(
    private readonly findOrPlace: FindOrPlaceOrder,
    private readonly jobs: OrderJobsRepository,
    private readonly ends: OrderEnds,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays processing. */
  async execute(claimed: ClaimedOrder): Promise<void> {
    const { order } = claimed;
    const result = await this.findOrPlace.execute(claimed);
    switch (result?.state) {
      case undefined:
        return;
      case 'in_progress':
        return this.jobs.postpone(claimed, result.checkAfterMs);
      case 'rejected':
      case 'provisioned':
        return this.ends.add({ lease: claimed, order, result, traceparent: currentTraceparent() });
    }
  }
}
