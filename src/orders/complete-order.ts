import { Injectable } from '@nestjs/common';
import { Alerts } from '../alerts/index.js';
import { type IssuedEsim, IssueEsims } from '../esims/index.js';
import { EventRecorder } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import type { ProviderFailure, ProviderOrderState } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import { RefreshCatalog, ReportCostOverrun } from '../catalog-sync/index.js';
import { type OrderEntity, priceOf } from './order.js';
import { type OrderLease, OrderOutcomesRepository } from './order-jobs.repository.js';

export type Provisioned = Extract<ProviderOrderState, { state: 'provisioned' }>;

/**
 * Records the outcome of a processing order in one transaction: its status, the money, its eSIMs and its event (D22).
 * False when the lease is void; then nothing was written.
 */
@Injectable()
export class CompleteOrder {
  constructor(
    private readonly outcomes: OrderOutcomesRepository,
    private readonly wallet: Wallet,
    private readonly issueEsims: IssueEsims,
    private readonly events: EventRecorder,
    private readonly refreshCatalog: RefreshCatalog,
    private readonly reportCostOverrun: ReportCostOverrun,
    private readonly alerts: Alerts,
  ) {}

  /** Issues what was provisioned, at least one profile: that much is charged, the rest of the hold released. */
  async issue(tx: Tx, lease: OrderLease, order: OrderEntity, result: Provisioned): Promise<boolean> {
    const profiles = result.profiles.slice(0, order.quantity);
    const issued = profiles.length;
    const failed = order.quantity - issued;
    const status = failed === 0 ? 'issued' : 'partially_issued';
    const outcome = { status, issued, failed, failure: result.shortfall } as const;
    const version = await this.outcomes.markIssued(tx, lease, outcome);
    if (version === null) return false;
    await this.settle(tx, order, issued);
    const issuedAt = await databaseNow(tx);
    const esims = await this.issueProfiles(tx, order, profiles, issuedAt);
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
          version,
        },
      },
    ]);
    await this.learnFrom(tx, order, result.shortfall);
    if (result.actualCost)
      await this.reportCostOverrun.execute(tx, 'order.needs_review', order, result.actualCost);
    await this.reportOverDelivery(tx, order, result.profiles.length);
    return true;
  }

  /** Fails the order and releases the whole hold. */
  async fail(tx: Tx, lease: OrderLease, order: OrderEntity, failure: ProviderFailure): Promise<boolean> {
    const version = await this.outcomes.markFailed(tx, lease, failure);
    if (version === null) return false;
    await this.settle(tx, order, 0);
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
          refunded: priceOf(order, order.quantity),
          version,
        },
      },
    ]);
    await this.learnFrom(tx, order, failure);
    return true;
  }

  /** More than was ordered is nobody's: we are charged for it, the partner is not. */
  private async reportOverDelivery(tx: Tx, order: OrderEntity, provisioned: number): Promise<void> {
    if (provisioned <= order.quantity) return;
    const { id: subjectId, partnerId, provider, quantity } = order;
    const details = { provider, quantity, provisioned };
    const onceKey = 'surplus';
    await this.alerts.raise(tx, { type: 'order.needs_review', partnerId, subjectId, details, onceKey });
  }

  /** The next order must not be sold at a price that the provider has just refused. */
  private async learnFrom(tx: Tx, order: OrderEntity, failure: ProviderFailure | null): Promise<void> {
    if (failure?.code === 'price_changed') await this.refreshCatalog.execute(tx, order.createdAt);
  }

  private async settle(tx: Tx, order: OrderEntity, issued: number): Promise<void> {
    const capturedAmount = priceOf(order, issued).amount;
    await this.wallet.settle(tx, { mode: order.mode, subject: { orderId: order.id }, capturedAmount });
  }

  private issueProfiles(
    tx: Tx,
    order: OrderEntity,
    profiles: Provisioned['profiles'],
    issuedAt: Date,
  ): Promise<readonly IssuedEsim[]> {
    const terms = {
      orderId: order.id,
      partnerId: order.partnerId,
      mode: order.mode,
      provider: order.provider,
      packageId: order.packageId,
      dataBytes: order.dataBytes,
      validityDays: order.validityDays,
      activationPolicy: order.activationPolicy,
      issuedAt,
    };
    return this.issueEsims.execute(tx, terms, profiles);
  }
}
