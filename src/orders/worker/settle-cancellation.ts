import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { EsimsRepository, isUntouched } from '../../esims/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { callProvider, type ProviderFailure, ProviderRegistry } from '../../providers/index.js';
import type { OrderEntity } from '../order.entity.js';
import { type OrderLease, OrderQueueRepository } from '../order-queue.repository.js';

/** Puts a cancellation to the upstream and records its word: canceled and refunded, or back where it was (D22). */
@Injectable()
export class SettleCancellation {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly providers: ProviderRegistry,
    private readonly queue: OrderQueueRepository,
    private readonly esims: EsimsRepository,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown when the upstream gave no answer: the order stays canceling. */
  async execute(lease: OrderLease, order: OrderEntity): Promise<void> {
    const esims = await this.esims.listByOrders(this.manager, [order.id]);
    if (!esims.every(isUntouched)) {
      return this.transactions.run((tx) => this.refuse(tx, lease, order, IN_USE));
    }
    const provider = this.providers.getByName(order.provider);
    const result = await callProvider(provider, (signal) =>
      provider.cancelOrder(
        {
          reference: order.providerReference,
          quantity: order.quantity,
          esims: esims.map(({ providerEsimId, iccid, createdAt }) => ({
            providerEsimId,
            iccid,
            issuedAt: createdAt,
          })),
        },
        signal,
      ),
    );
    if (result.state === 'canceled') await this.cancel(lease, order);
    else await this.transactions.run((tx) => this.refuse(tx, lease, order, result.failure));
  }

  private async cancel(lease: OrderLease, order: OrderEntity): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.queue.holds(tx, lease))) return;
      const esims = await this.esims.listByOrderForUpdate(tx, order.id);
      // Activated while the upstream was asked: what a customer uses is not taken back.
      if (!esims.every(isUntouched)) return this.refuse(tx, lease, order, IN_USE);
      await this.queue.markCanceled(tx, lease);
      for (const esim of esims) {
        await this.esims.update(tx, esim.id, { status: 'canceled' });
      }
    });
  }

  private async refuse(
    tx: Tx,
    lease: OrderLease,
    order: OrderEntity,
    failure: ProviderFailure,
  ): Promise<void> {
    await this.queue.markCancelRefused(tx, lease, order.statusBeforeCancel ?? 'issued', failure);
  }
}

const IN_USE: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'An eSIM of the order was installed or has ended meanwhile.',
};
