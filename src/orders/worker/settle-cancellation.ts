import { Injectable } from '@nestjs/common';
import { EsimsRepository } from '../../esims/index.js';
import { Transactions } from '../../infra/database/index.js';
import { callProvider, type ProviderFailure, ProviderRegistry } from '../../providers/index.js';
import type { OrderEntity } from '../order.entity.js';
import { type OrderLease, OrderQueueRepository } from '../order-queue.repository.js';

/** Puts a cancellation to the upstream and records its word: canceled and refunded, or back where it was (D22). */
@Injectable()
export class SettleCancellation {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly queue: OrderQueueRepository,
    private readonly esims: EsimsRepository,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown when the upstream gave no answer: the order stays canceling. */
  async execute(lease: OrderLease, order: OrderEntity): Promise<void> {
    const provider = this.providers.getByName(order.provider);
    const result = await callProvider(provider, (signal) =>
      provider.cancelOrder(order.providerReference, signal),
    );
    if (result.state === 'canceled') await this.cancel(lease, order);
    else await this.refuse(lease, order, result.failure);
  }

  private async cancel(lease: OrderLease, order: OrderEntity): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.queue.markCanceled(tx, lease))) return;
      for (const esim of await this.esims.listByOrderForUpdate(tx, order.id)) {
        await this.esims.update(tx, esim.id, { status: 'canceled' });
      }
    });
  }

  private async refuse(lease: OrderLease, order: OrderEntity, failure: ProviderFailure): Promise<void> {
    const before = order.statusBeforeCancel ?? 'issued';
    await this.transactions.run(
      async (tx) => void (await this.queue.markCancelRefused(tx, lease, before, failure)),
    );
  }
}
