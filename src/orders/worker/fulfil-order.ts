import { Injectable } from '@nestjs/common';
import type { PackageEntity } from '../../catalog/index.js';
import { CatalogRepository } from '../../catalog/index.js';
import { multiplyMoney } from '../../common/money.js';
import { IssueEsims, type IssuedEsim } from '../../esims/index.js';
import { EventRecorder } from '../../events/index.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import {
  callProvider,
  type ProviderFailure,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderRegistry,
} from '../../providers/index.js';
import type { OrderEntity } from '../order.entity.js';
import { type OrderLease, OrderQueueRepository } from '../order-queue.repository.js';

type Provisioned = Extract<ProviderOrderState, { state: 'provisioned' }>;

/**
 * Takes a processing order to its end: one upstream call outside any transaction, then one transaction with the
 * order's end, its eSIMs and its event. Killed anywhere, it is done again with the same reference (D19, D22).
 */
@Injectable()
export class FulfilOrder {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly catalog: CatalogRepository,
    private readonly queue: OrderQueueRepository,
    private readonly issueEsims: IssueEsims,
    private readonly events: EventRecorder,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown when the upstream gave no answer: the order stays processing. */
  async execute(lease: OrderLease, order: OrderEntity): Promise<void> {
    const result = await this.askProvider(order);
    switch (result.state) {
      case 'in_progress':
        return this.queue.postpone(lease, result.checkAfterMs);
      case 'rejected':
        return this.fail(lease, order, result.failure);
      case 'provisioned':
        return this.issue(lease, order, result);
    }
  }

  private async askProvider(order: OrderEntity): Promise<ProviderOrderState> {
    const provider = this.providers.getByName(order.provider);
    const request: ProviderOrderRequest = {
      reference: order.providerReference,
      packageId: order.packageId,
      upstreamPackageId: order.packageId,
      quantity: order.quantity,
      unitCost: null,
      acceptedAt: order.createdAt,
    };
    const isFirst = order.upstreamAttempts === 1;
    const found = isFirst
      ? null
      : await callProvider(provider, (signal) => provider.findOrder(request, signal));
    if (found) return found;
    return callProvider(provider, (signal) =>
      provider.placeOrder(request, isFirst ? 'first' : 'again', signal),
    );
  }

  private async issue(lease: OrderLease, order: OrderEntity, result: Provisioned): Promise<void> {
    const issued = result.profiles.length;
    const failed = order.quantity - issued;
    const status = failed === 0 ? 'issued' : 'partially_issued';
    await this.transactions.run(async (tx) => {
      const outcome = { status, issued, failed, failure: result.shortfall } as const;
      if (!(await this.queue.markIssued(tx, lease, outcome))) return;
      const issuedAt = await databaseNow(tx);
      const esims = await this.issueProfiles(tx, order, result, issuedAt);
      await this.events.record(tx, [
        {
          type: 'order.issued',
          partnerId: order.partnerId,
          mode: order.mode,
          happenedAt: issuedAt,
          data: {
            order_id: order.id,
            reference: order.reference,
            package_id: order.packageId,
            quantity_issued: issued,
            quantity_failed: failed,
            esims,
          },
        },
      ]);
    });
  }

  private async issueProfiles(
    tx: Tx,
    order: OrderEntity,
    result: Provisioned,
    issuedAt: Date,
  ): Promise<readonly IssuedEsim[]> {
    const sold = await this.getSoldPackage(tx, order);
    const terms = {
      orderId: order.id,
      partnerId: order.partnerId,
      mode: order.mode,
      provider: order.provider,
      packageId: order.packageId,
      dataBytes: sold.dataBytes,
      unlimited: sold.unlimited,
      validityDays: sold.validityDays,
      activationPolicy: sold.activationPolicy,
      issuedAt,
    };
    return this.issueEsims.execute(tx, terms, result.profiles);
  }

  /** Withdrawn packages stay in the table, so a sold one is always there. */
  private async getSoldPackage(tx: Tx, order: OrderEntity): Promise<PackageEntity> {
    const sold = await this.catalog.findPackage(order.mode, order.packageId, tx.manager);
    if (!sold) throw new Error(`package of order ${order.id} is gone from the catalogue`);
    return sold;
  }

  private async fail(lease: OrderLease, order: OrderEntity, failure: ProviderFailure): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.queue.markFailed(tx, lease, failure))) return;
      await this.events.record(tx, [
        {
          type: 'order.failed',
          partnerId: order.partnerId,
          mode: order.mode,
          happenedAt: await databaseNow(tx),
          data: {
            order_id: order.id,
            reference: order.reference,
            package_id: order.packageId,
            code: failure.code,
            reason: failure.reason,
            refunded: multiplyMoney(
              { amount: order.unitPriceAmount, currency: order.currency },
              order.quantity,
            ),
          },
        },
      ]);
    });
  }
}
