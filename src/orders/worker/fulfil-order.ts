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
import { EndOrder, type Provisioned } from '../end-order.js';
import type { OrderEntity } from '../order.entity.js';
import { type ClaimedOrder, OrderJobsRepository } from '../order-jobs.repository.js';
import { toProviderRequest } from '../provider-order-request.js';

interface NotedPlacement {
  readonly placement: Placement;
  /** A time of `performance.now()` before its note was written: it leaves within the timeout from then, or never. */
  readonly notedAfter: number;
}

/**
 * Takes a processing order to its end: provider calls outside any transaction, then one transaction with the
 * order's end, its money, its eSIMs and its event. Killed anywhere, it is done again with the same reference, and
 * what may have left before is looked for before anything is placed again (D19, D22).
 */
@Injectable()
export class FulfilOrder {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly queue: OrderJobsRepository,
    private readonly end: EndOrder,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays processing. */
  async execute(claimed: ClaimedOrder, order: OrderEntity): Promise<void> {
    const provider = this.providers.getByName(order.provider);
    const result = claimed.neverPlaced
      ? await this.place(provider, claimed, order, { placement: 'first', notedAfter: claimed.notedAfter })
      : await this.findOrPlace(provider, claimed, order);
    if (result) await this.record(claimed, order, result);
  }

  /** Null when nothing may be placed yet, or any more; then the order is somebody else's or postponed. */
  private async findOrPlace(
    provider: EsimProvider,
    claimed: ClaimedOrder,
    order: OrderEntity,
  ): Promise<ProviderOrderState | null> {
    const found = await callProvider(provider, (signal) =>
      provider.findOrder(toProviderRequest(order), signal),
    );
    if (found) return found;
    const turn = await this.queue.placeAgain(claimed, provider.readLagMs);
    if (turn === null) return null;
    if (turn.waitMs === 0) {
      return this.place(provider, claimed, order, { placement: 'again', notedAfter: turn.notedAfter });
    }
    // It may turn up before the whole lag is over.
    await this.queue.postpone(claimed, Math.min(turn.waitMs, retryDelayMs(order.upstreamAttempts)));
    return null;
  }

  private async place(
    provider: EsimProvider,
    claimed: ClaimedOrder,
    order: OrderEntity,
    { placement, notedAfter }: NotedPlacement,
  ): Promise<ProviderOrderState> {
    try {
      const request = toProviderRequest(order);
      return await callProvider(
        provider,
        (signal) => provider.placeOrder(request, placement, signal),
        notedAfter,
      );
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) await this.queue.prolongPlacement(claimed);
      else if (placement === 'first') await this.queue.forgetPlacement(claimed);
      throw error;
    }
  }

  private async record(claimed: ClaimedOrder, order: OrderEntity, result: ProviderOrderState): Promise<void> {
    switch (result.state) {
      case 'in_progress':
        return this.queue.postpone(claimed, result.checkAfterMs);
      case 'rejected':
        return this.fail(claimed, order, result.failure);
      case 'provisioned':
        if (result.profiles.length > 0) return this.issue(claimed, order, result);
        return this.fail(claimed, order, result.shortfall ?? NOTHING_PROVISIONED);
    }
  }

  private async issue(claimed: ClaimedOrder, order: OrderEntity, result: Provisioned): Promise<void> {
    await this.transactions.run((tx) => this.end.issue(tx, claimed, order, result));
  }

  private async fail(claimed: ClaimedOrder, order: OrderEntity, failure: ProviderFailure): Promise<void> {
    await this.transactions.run((tx) => this.end.fail(tx, claimed, order, failure));
  }
}

const NOTHING_PROVISIONED: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The upstream ended the order without an eSIM.',
};
