import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { currentTraceparent } from '../../infra/tracing/index.js';
import { ProviderRegistry } from '../../providers/index.js';
import { type ClaimedPurchase, FindOrPlace, PurchaseEnds } from '../../purchases/index.js';
import { CompleteOrder, type OrderEnd } from '../complete-order.js';
import { OrderJobsRepository } from '../order-jobs.repository.js';
import { type OrderEntity, ORDERS, toProviderOrderRequest } from '../order.js';

/**
 * Takes a processing order to its outcome: provider calls outside any transaction, then one transaction with the
 * order's status, its money, its eSIMs and its event, and those of other orders that end now. Killed anywhere, it is
 * done again with the same reference (D19, D22).
 */
@Injectable()
export class FulfilOrder {
  private readonly provider: FindOrPlace<OrderEntity>;
  private readonly ends: PurchaseEnds<OrderEnd>;

  constructor(
    private readonly jobs: OrderJobsRepository,
    providers: ProviderRegistry,
    transactions: Transactions,
    complete: CompleteOrder,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.provider = new FindOrPlace(providers, jobs);
    this.ends = new PurchaseEnds(ORDERS, transactions, (tx, ends) => complete.completeAll(tx, ends), logger);
  }

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays processing. */
  async fulfil(claimed: ClaimedPurchase<OrderEntity>): Promise<void> {
    const { purchase: order } = claimed;
    const request = toProviderOrderRequest(order);
    const result = await this.provider.findOrPlace(claimed, {
      find: (provider, signal) => provider.findOrder(request, signal),
      place: (provider, placement, signal) => provider.placeOrder(request, placement, signal),
    });
    switch (result?.state) {
      case undefined:
        return;
      case 'in_progress':
        return this.jobs.postpone(claimed, result.checkAfterMs);
      case 'rejected':
      case 'provisioned':
        return this.ends.add(order.mode, {
          lease: claimed,
          order,
          result,
          traceparent: currentTraceparent(),
        });
    }
  }
}
