import { Injectable } from '@nestjs/common';
import { type EsimEntity, EsimObserver, EsimsRepository } from '../esims/index.js';
import { type EventData, EventRecorder, type NewEvent } from '../events/index.js';
import type { Tx } from '../infra/database/index.js';
import type { ProviderFailure, ProviderTopupState } from '../providers/index.js';
import { type ChangedPurchase, type PurchaseLease, returnedSpending } from '../purchases/index.js';
import { Wallet } from '../wallet/index.js';
import { RefreshCatalog, ReportCostOverrun } from '../catalog-sync/index.js';
import type { TopupEntity } from './topup.js';
import { TopupJobsRepository } from './topup-jobs.repository.js';

/** The eSIM's totals after a top-up as its provider reports them; null if it does not. */
export type AppliedTopup = Pick<
  Extract<ProviderTopupState, { state: 'completed' }>,
  'totalBytes' | 'expiresAt' | 'queues' | 'actualCost'
>;

/** Terminal result of a top-up. */
export interface TopupEnd {
  readonly lease: PurchaseLease;
  readonly topup: TopupEntity;
  readonly result: Exclude<ProviderTopupState, { state: 'in_progress' }>;
  /** Trace of the job that ended it; defaults to the trace of the top-up's acceptance. */
  readonly traceparent?: string | null;
}

/** A top-up ended by this transaction. */
interface EndedTopup extends TopupEnd {
  readonly esim: EsimEntity;
  readonly end: ChangedPurchase;
}

/**
 * Records the outcomes of processing top-ups in one transaction: statuses, eSIM changes, money and events (D22, D24).
 * It runs one statement per kind, however many top-ups there are.
 */
@Injectable()
export class CompleteTopup {
  constructor(
    private readonly jobs: TopupJobsRepository,
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly wallet: Wallet,
    private readonly events: EventRecorder,
    private readonly refreshCatalog: RefreshCatalog,
    private readonly reportCostOverrun: ReportCostOverrun,
  ) {}

  /** Same as `completeAll`, for one top-up. */
  async complete(tx: Tx, end: TopupEnd): Promise<boolean> {
    const [ended] = await this.completeAll(tx, [end]);
    return ended!;
  }

  /**
   * A completed top-up extends its eSIM and is charged in full; an ended eSIM stays ended (D23). A failed one costs
   * nothing. Returns false for top-ups whose lease is void: nothing was written for them, regardless of the others.
   * Locks top-ups, then eSIMs, holds and wallets (D40, B9).
   */
  async completeAll(tx: Tx, ends: readonly TopupEnd[]): Promise<readonly boolean[]> {
    const changed = await this.jobs.end(
      tx,
      ends.map(({ lease, result }) => ({
        lease,
        fulfilled: result.state === 'completed' ? 1 : 0,
        failure: failureOf(result),
      })),
    );
    const ended = await this.withEsims(
      tx,
      ends.flatMap((one, index) => {
        const end = changed[index];
        return end ? [{ ...one, end }] : [];
      }),
    );
    this.observer.applyTopups(tx, ended.flatMap(toAdded));
    await this.events.record(tx, ended.map(toEvent));
    for (const one of ended) await this.report(tx, one);
    await this.settle(tx, ended);
    return changed.map((end) => end !== null);
  }

  /** Locks their eSIMs. Two top-ups of an eSIM share one object, so the second sees the first one's change. */
  private async withEsims(
    tx: Tx,
    ended: readonly Omit<EndedTopup, 'esim'>[],
  ): Promise<readonly EndedTopup[]> {
    if (ended.length === 0) return [];
    const ids = [...new Set(ended.map(({ topup }) => topup.esimId))];
    const locked = await this.esims.listByIdsForUpdate(tx, ids);
    const byId = new Map(locked.map((esim) => [esim.id, esim]));
    return ended.map((one) => ({ ...one, esim: existing(byId.get(one.topup.esimId), one.topup) }));
  }

  /**
   * Captures the price of completed top-ups and releases the rest (D27). Last, because acceptance waits for the
   * wallets' rows.
   */
  private async settle(tx: Tx, ended: readonly EndedTopup[]): Promise<void> {
    const settlements = ended.map(({ topup, result }) => ({
      mode: topup.mode,
      subject: { topupId: topup.id },
      capturedAmount: result.state === 'completed' ? topup.priceAmount : 0,
      returned: returnedSpending(topup, result.state === 'completed' ? 0 : topup.priceAmount),
    }));
    await this.wallet.settle(tx, settlements);
  }

  /** Alerts the portal team and requests a catalog refresh, in the rare cases that need it. */
  private async report(tx: Tx, { topup, result }: EndedTopup): Promise<void> {
    // The next top-up must not be sold at a price that the provider has just refused.
    if (failureOf(result)?.code === 'price_changed')
      await this.refreshCatalog.ofTopup(tx, topup.packageId, topup.createdAt);
    if (result.state === 'completed' && result.actualCost)
      await this.reportCostOverrun.report(tx, 'topup.needs_review', topup, result.actualCost);
  }
}

function failureOf(result: TopupEnd['result']): ProviderFailure | null {
  return result.state === 'rejected' ? result.failure : null;
}

/** An eSIM is never deleted while one of its top-ups is open. */
function existing(esim: EsimEntity | undefined, { id }: TopupEntity): EsimEntity {
  if (!esim) throw new Error(`the eSIM of top-up ${id} is gone`);
  return esim;
}

function toAdded({ topup, esim, result, end }: EndedTopup): Parameters<EsimObserver['applyTopups']>[1] {
  if (result.state === 'rejected') return [];
  const added = {
    dataBytes: topup.dataAddedBytes,
    validityDays: topup.validityAddedDays,
    upstreamTotalBytes: result.totalBytes,
    upstreamExpiresAt: result.expiresAt,
    queuedPackageId: result.queues ? topup.packageId : null,
  };
  return [{ esim, added, at: end.at }];
}

function toEvent({ topup, esim, result, end, traceparent: ofJob }: EndedTopup): NewEvent {
  const { partnerId, mode } = topup;
  const about = { partnerId, mode, happenedAt: end.at, traceparent: ofJob ?? topup.traceparent };
  const data = { ...identity(topup, esim), version: end.version };
  if (result.state === 'rejected') {
    const { code, reason } = result.failure;
    return { type: 'order.topup.failed', ...about, data: { ...data, code, reason } };
  }
  const { dataAddedBytes: data_added_bytes, validityAddedDays: validity_added_days } = topup;
  return {
    type: 'order.topup.completed',
    ...about,
    data: { ...data, data_added_bytes, validity_added_days },
  };
}

function identity(
  topup: TopupEntity,
  esim: EsimEntity,
): Omit<EventData['order.topup.failed'], 'code' | 'reason' | 'version'> {
  return {
    topup_id: topup.id,
    esim_id: esim.id,
    order_id: esim.orderId,
    iccid: esim.iccid,
    package_id: topup.packageId,
    reference: topup.reference,
  };
}
