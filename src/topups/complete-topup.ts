import { Injectable } from '@nestjs/common';
import { type EsimEntity, EsimObserver, EsimsRepository } from '../esims/index.js';
import { type EventData, EventRecorder } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import type { ProviderFailure, ProviderTopupState } from '../providers/index.js';
import { Wallet } from '../wallet/index.js';
import { RefreshCatalog, ReportCostOverrun } from '../catalog-sync/index.js';
import type { TopupEntity } from './topup.js';
import { type TopupLease, TopupOutcomesRepository } from './topup-jobs.repository.js';

/** What a provider that has applied a top-up says of the eSIM; null where it does not say. */
export type AppliedTopup = Pick<
  Extract<ProviderTopupState, { state: 'completed' }>,
  'totalBytes' | 'expiresAt' | 'actualCost'
>;

/**
 * Records the outcome of a processing top-up in one transaction: its status, the change of its eSIM, the money and its
 * event (D22, D24). False when the lease is void; then nothing was written.
 */
@Injectable()
export class CompleteTopup {
  constructor(
    private readonly outcomes: TopupOutcomesRepository,
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly wallet: Wallet,
    private readonly events: EventRecorder,
    private readonly refreshCatalog: RefreshCatalog,
    private readonly reportCostOverrun: ReportCostOverrun,
  ) {}

  /** Gives the eSIM what the top-up adds, and captures the whole price. An eSIM that has ended stays ended (D23). */
  async complete(tx: Tx, lease: TopupLease, topup: TopupEntity, applied: AppliedTopup): Promise<boolean> {
    const version = await this.outcomes.markCompleted(tx, lease);
    if (version === null) return false;
    const esim = await this.applyTo(tx, topup, applied);
    await this.settle(tx, topup, topup.priceAmount);
    await this.events.record(tx, [
      {
        type: 'order.topup.completed',
        ...(await about(tx, topup)),
        data: {
          ...identity(topup, esim),
          data_added_bytes: topup.dataAddedBytes,
          validity_added_days: topup.validityAddedDays,
          version,
        },
      },
    ]);
    if (applied.actualCost)
      await this.reportCostOverrun.execute(tx, 'topup.needs_review', topup, applied.actualCost);
    return true;
  }

  /** Fails the top-up and releases the whole hold. */
  async fail(tx: Tx, lease: TopupLease, topup: TopupEntity, failure: ProviderFailure): Promise<boolean> {
    const version = await this.outcomes.markFailed(tx, lease, failure);
    if (version === null) return false;
    const esim = existing(await this.esims.find(topup, topup.esimId, tx.manager), topup);
    await this.settle(tx, topup, 0);
    await this.events.record(tx, [
      {
        type: 'order.topup.failed',
        ...(await about(tx, topup)),
        data: { ...identity(topup, esim), code: failure.code, reason: failure.reason, version },
      },
    ]);
    // The next one must not be sold at a price that the provider has just refused.
    if (failure.code === 'price_changed')
      await this.refreshCatalog.ofTopup(tx, topup.packageId, topup.createdAt);
    return true;
  }

  private async applyTo(tx: Tx, topup: TopupEntity, applied: AppliedTopup): Promise<EsimEntity> {
    const esim = existing(await this.esims.findByIdForUpdate(tx, topup.esimId), topup);
    return this.observer.apply(tx, esim, {
      kind: 'topped_up',
      dataBytes: topup.dataAddedBytes,
      validityDays: topup.validityAddedDays,
      upstreamTotalBytes: applied.totalBytes,
      upstreamExpiresAt: applied.expiresAt,
    });
  }

  /** Captures `capturedAmount` of what was held and releases the rest (D27). */
  private async settle(tx: Tx, topup: TopupEntity, capturedAmount: number): Promise<void> {
    await this.wallet.settle(tx, [{ mode: topup.mode, subject: { topupId: topup.id }, capturedAmount }]);
  }
}

/** eSIMs are never deleted. */
function existing(esim: EsimEntity | null, { id }: TopupEntity): EsimEntity {
  if (!esim) throw new Error(`the eSIM of top-up ${id} is gone`);
  return esim;
}

async function about(
  tx: Tx,
  topup: TopupEntity,
): Promise<{ partnerId: string; mode: TopupEntity['mode']; happenedAt: Date }> {
  return { partnerId: topup.partnerId, mode: topup.mode, happenedAt: await databaseNow(tx) };
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
