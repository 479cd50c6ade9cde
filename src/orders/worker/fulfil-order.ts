import { Injectable } from '@nestjs/common';
import { Transactions } from '../../infra/database/index.js';
import type { ProviderFailure } from '../../providers/index.js';
import { CompleteOrder, type Provisioned } from '../complete-order.js';
import type { OrderEntity } from '../order.js';
import { type ClaimedOrder, OrderJobsRepository } from '../order-jobs.repository.js';
import { FindOrPlaceOrder } from './find-or-place-order.js';

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
