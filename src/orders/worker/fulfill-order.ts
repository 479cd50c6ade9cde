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
 * Brings a processing order to its outcome. Provider calls run outside any transaction. One transaction then writes the
 * order's status, money, eSIMs and event, together with other orders that end now. If the process is killed at any
 * point, the order is processed again with the same reference (D19, D22).
 */
@Injectable()
export class FulfillOrder {
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

  /**
   * Returns whether the order has ended.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable: the order stays processing
   */
  async fulfill(claimed: ClaimedPurchase<OrderEntity>): Promise<boolean> {
    const { purchase: order } = claimed;
    const request = toProviderOrderRequest(order);
    const result = await this.provider.findOrPlace(claimed, {
      find: (provider, signal) => provider.findOrder(request, signal),
      place: (provider, placement, signal) => provider.placeOrder(request, placement, signal),
    });
    switch (result?.state) {
      case undefined:
        return false;
      case 'in_progress':
        await this.jobs.postpone(claimed, result.checkAfterMs);
        return false;
      case 'rejected':
      case 'provisioned': {
        const end = { lease: claimed, order, result, traceparent: currentTraceparent() };
        await this.ends.add(order.mode, end);
        return true;
      }
    }
  }
}
