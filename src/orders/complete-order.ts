import { Injectable } from '@nestjs/common';
import { Alerts } from '../alerts/index.js';
import { type EsimIssue, type IssuedEsim, IssueEsims } from '../esims/index.js';
import { EventRecorder, type NewEvent } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure, ProviderOrderState, ProviderProfile } from '../providers/index.js';
import type { ChangedPurchase, PurchaseLease } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import { RefreshCatalog, ReportCostOverrun } from '../catalog-sync/index.js';
import { type OrderEntity, priceOf } from './order.js';
import { OrderJobsRepository } from './order-jobs.repository.js';

type Provisioned = Extract<ProviderOrderState, { state: 'provisioned' }>;

/** The word that ends the provisioning of an order. */
export interface OrderEnd {
  readonly lease: PurchaseLease;
  readonly order: OrderEntity;
  /** What it was sold; without a profile it fails, by its shortfall. */
  readonly result: Provisioned | Extract<ProviderOrderState, { state: 'rejected' }>;
  /** Of the job that ended it; without one its event is traced as a part of the order's acceptance. */
  readonly traceparent?: string | null;
}

/** An order that this transaction has ended. */
interface EndedOrder {
  readonly order: OrderEntity;
  readonly end: ChangedPurchase;
  /** Of the order's quantity at most; none: it failed. */
  readonly profiles: readonly ProviderProfile[];
  readonly failure: ProviderFailure | null;
  readonly result: OrderEnd['result'];
  readonly traceparent?: string | null;
}

const NOTHING_PROVISIONED: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The upstream ended the order without an eSIM.',
};

/**
 * Records the outcomes of processing orders in one transaction: their statuses, the money, their eSIMs and their events
 * (D22), each kind in one statement however many orders there are.
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

  /** Of one order: see `completeAll`. */
  async complete(tx: Tx, end: OrderEnd): Promise<boolean> {
    const [ended] = await this.completeAll(tx, [end]);
    return ended!;
  }

  /**
   * What was issued is charged, the rest of the hold released; an order without an eSIM fails and costs nothing. False
   * for those whose lease is void: nothing was written for them, whatever the others did. Locks orders, then holds, then
   * wallets (D40, B9).
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
    const esims = this.issueEsims.execute(tx, issued.map(toIssue));
    const esimsOf = new Map(issued.map(({ order }, index) => [order.id, esims[index]!]));
    await this.events.record(
      tx,
      ended.map((one) => toEvent(one, esimsOf.get(one.order.id) ?? [])),
    );
    for (const one of ended) await this.report(tx, one);
    // Last: acceptance waits for the wallets' rows.
    await this.settle(tx, ended);
    return changed.map((end) => end !== null);
  }

  private async settle(tx: Tx, ended: readonly EndedOrder[]): Promise<void> {
    const settlements = ended.map(({ order, profiles }) => ({
      mode: order.mode,
      subject: { orderId: order.id },
      capturedAmount: priceOf(order, profiles.length).amount,
    }));
    await this.wallet.settle(tx, settlements);
  }

  /** What the portal team hears of, and what the catalogue learns. Seldom anything. */
  private async report(tx: Tx, { order, failure, result }: EndedOrder): Promise<void> {
    // The next order must not be sold at a price that the provider has just refused.
    if (failure?.code === 'price_changed') await this.refreshCatalog.execute(tx, order.createdAt);
    if (result.state === 'rejected') return;
    if (result.actualCost)
      await this.reportCostOverrun.execute(tx, 'order.needs_review', order, result.actualCost);
    await this.reportOverDelivery(tx, order, result.profiles.length);
  }

  /** More than was ordered is nobody's: we are charged for it, the partner is not. */
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
    validityDays: order.validityDays,
    activationPolicy: order.activationPolicy,
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
