import { Injectable } from '@nestjs/common';
import { Alerts } from '../alerts/index.js';
import { type EsimIssue, type IssuedEsim, IssueEsims } from '../esims/index.js';
import { EventRecorder, type NewEvent } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure, ProviderOrderState, ProviderProfile } from '../providers/index.js';
import { type ChangedPurchase, type PurchaseLease, returnedSpending } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import { RefreshCatalog, ReportCostOverrun } from '../catalog-sync/index.js';
import { type OrderEntity, priceOf } from './order.js';
import { OrderJobsRepository } from './order-jobs.repository.js';

type Provisioned = Extract<ProviderOrderState, { state: 'provisioned' }>;

/** Terminal result of an order's provisioning. */
export interface OrderEnd {
  readonly lease: PurchaseLease;
  readonly order: OrderEntity;
  /** Without any provisioned profile, the order fails with the result's shortfall. */
  readonly result: Provisioned | Extract<ProviderOrderState, { state: 'rejected' }>;
  /** Trace of the job that ended it; defaults to the trace of the order's acceptance. */
  readonly traceparent?: string | null;
}

/** An order ended by this transaction. */
interface EndedOrder {
  readonly order: OrderEntity;
  readonly end: ChangedPurchase;
  /** At most the order's quantity; empty when it failed. */
  readonly profiles: readonly ProviderProfile[];
  readonly failure: ProviderFailure | null;
  readonly result: OrderEnd['result'];
  readonly traceparent?: string | null;
}

const NOTHING_PROVISIONED: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The wholesaler ended the order without an eSIM.',
};

/**
 * Records the outcomes of processing orders in one transaction: statuses, money, eSIMs and events (D22). It runs one
 * statement per kind, however many orders there are.
 */
@Injectable()
export class CompleteOrder {
  constructor(
    private readonly jobs: OrderJobsRepository,
    private readonly wallet: Wallet,
    private readonly issueEsims: IssueEsims,
    private readonly events: EventRecorder,
    private readonly refreshCatalog: RefreshCatalog,
    private readonly reportCostOverrun: ReportCostOverrun,
    private readonly alerts: Alerts,
  ) {}

  /** Same as `completeAll`, for one order. */
  async complete(tx: Tx, end: OrderEnd): Promise<boolean> {
    const [ended] = await this.completeAll(tx, [end]);
    return ended!;
  }

  /**
   * Charges the issued eSIMs and releases the rest of the hold; an order without an eSIM fails and costs nothing.
   * Returns false for orders whose lease is void: nothing was written for them, regardless of the others. Locks orders,
   * then holds, then wallets (D40, B9).
   */
  async completeAll(tx: Tx, ends: readonly OrderEnd[]): Promise<readonly boolean[]> {
    const outcomes = ends.map((end) => ({ ...end, ...outcomeOf(end) }));
    const changed = await this.jobs.end(
      tx,
      outcomes.map(({ lease, profiles, failure }) => ({ lease, fulfilled: profiles.length, failure })),
    );
    const ended = outcomes.flatMap((outcome, index) => {
      const end = changed[index];
      return end ? [{ ...outcome, end }] : [];
    });
    const issued = ended.filter(({ profiles }) => profiles.length > 0);
    const esims = this.issueEsims.issue(tx, issued.map(toIssue));
    const esimsOf = new Map(issued.map(({ order }, index) => [order.id, esims[index]!]));
    await this.events.record(
      tx,
      ended.map((one) => toEvent(one, esimsOf.get(one.order.id) ?? [])),
    );
    for (const one of ended) await this.report(tx, one);
    // Last, because acceptance waits for the wallets' rows.
    await this.settle(tx, ended);
    return changed.map((end) => end !== null);
  }

  private async settle(tx: Tx, ended: readonly EndedOrder[]): Promise<void> {
    const settlements = ended.map(({ order, profiles }) => ({
      mode: order.mode,
      subject: { orderId: order.id },
      capturedAmount: priceOf(order, profiles.length).amount,
      returned: returnedSpending(order, priceOf(order, order.quantity - profiles.length).amount),
    }));
    await this.wallet.settle(tx, settlements);
  }

  /** Alerts the portal team and requests a catalog refresh, in the rare cases that need it. */
  private async report(tx: Tx, { order, failure, result }: EndedOrder): Promise<void> {
    // The next order must not be sold at a price that the provider has just refused.
    if (failure?.code === 'price_changed') await this.refreshCatalog.refresh(tx, order.createdAt);
    if (result.state === 'rejected') return;
    if (result.actualCost)
      await this.reportCostOverrun.report(tx, 'order.needs_review', order, result.actualCost);
    await this.reportOverDelivery(tx, order, result.profiles.length);
  }

  /** eSIMs beyond the ordered quantity belong to nobody: we are charged for them, the partner is not. */
  private async reportOverDelivery(tx: Tx, order: OrderEntity, provisioned: number): Promise<void> {
    if (provisioned <= order.quantity) return;
    const { id: subjectId, partnerId, provider, quantity } = order;
    const details = { provider, quantity, provisioned };
    const onceKey = 'surplus';
    await this.alerts.raise(tx, { type: 'order.needs_review', partnerId, subjectId, details, onceKey });
  }
}

function outcomeOf({ order, result }: OrderEnd): Pick<EndedOrder, 'profiles' | 'failure'> {
  if (result.state === 'rejected') return { profiles: [], failure: result.failure };
  const profiles = result.profiles.slice(0, order.quantity);
  return { profiles, failure: result.shortfall ?? (profiles.length === 0 ? NOTHING_PROVISIONED : null) };
}

function toIssue({ order, profiles, end }: EndedOrder): EsimIssue {
  const terms = {
    orderId: order.id,
    partnerId: order.partnerId,
    mode: order.mode,
    provider: order.provider,
    packageId: order.packageId,
    dataBytes: order.dataBytes,
    days: order.days,
    validityDays: order.validityDays,
    activationPolicy: order.activationPolicy,
    installWithinDays: order.installWithinDays,
    issuedAt: end.at,
  };
  return { terms, profiles };
}

function toEvent(ended: EndedOrder, esims: readonly IssuedEsim[]): NewEvent {
  const { order, profiles, failure, end } = ended;
  const { partnerId, mode } = order;
  const { version } = end;
  const identity = { order_id: order.id, reference: order.reference, package_id: order.packageId };
  const traceparent = ended.traceparent ?? order.traceparent;
  const about = { partnerId, mode, happenedAt: end.at, traceparent };
  if (profiles.length === 0) {
    const { code, reason } = failure!;
    const refunded = priceOf(order, order.quantity);
    return { type: 'order.failed', ...about, data: { ...identity, code, reason, refunded, version } };
  }
  const quantity_issued = profiles.length;
  const quantity_failed = order.quantity - quantity_issued;
  return {
    type: 'order.issued',
    ...about,
    data: { ...identity, quantity_issued, quantity_failed, esims, version },
  };
}
