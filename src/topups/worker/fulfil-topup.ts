import { Injectable } from '@nestjs/common';
import { type EsimEntity, EsimObserver, EsimsRepository } from '../../esims/index.js';
import { type EventData, EventRecorder } from '../../events/index.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import type { ProviderFailure, ProviderTopupState } from '../../providers/index.js';
import { Wallet } from '../../wallet/index.js';
import { RefreshCatalog } from '../../wholesale/index.js';
import type { TopupEntity } from '../topup.entity.js';
import { type TopupLease, TopupQueueRepository } from '../topup-queue.repository.js';
import { AskUpstream } from './ask-upstream.js';

type Completed = Extract<ProviderTopupState, { state: 'completed' }>;

/**
 * Takes a processing top-up to its end: one upstream call outside any transaction, then one transaction with the
 * top-up's end, the change of its eSIM, its charge and its event. Killed anywhere, it is done again with the same reference (D19).
 *
 * An eSIM may end between acceptance and here. While nothing has left for the upstream, the top-up fails and costs
 * nothing. Once the upstream has applied it, the money is spent: it completes, and the ended eSIM stays ended.
 */
@Injectable()
export class FulfilTopup {
  constructor(
    private readonly upstream: AskUpstream,
    private readonly queue: TopupQueueRepository,
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly wallet: Wallet,
    private readonly events: EventRecorder,
    private readonly refreshCatalog: RefreshCatalog,
    private readonly transactions: Transactions,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable without an answer: the top-up stays processing. */
  async execute(lease: TopupLease, topup: TopupEntity): Promise<void> {
    const esim = await this.esims.getById(topup.esimId);
    const ended = ENDED[esim.status];
    if (ended && topup.upstreamPlacedAt === null) return this.fail(lease, topup, esim, ended);
    const result = await this.upstream.execute(lease, topup, esim);
    switch (result?.state) {
      case undefined:
        return;
      case 'in_progress':
        return this.queue.postpone(lease, result.checkAfterMs);
      case 'rejected':
        return this.fail(lease, topup, esim, result.failure);
      case 'completed':
        return this.complete(lease, topup, result);
    }
  }

  private async complete(lease: TopupLease, topup: TopupEntity, result: Completed): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.queue.markCompleted(tx, lease))) return;
      const esim = await this.applyTo(tx, topup, result);
      await this.settle(tx, topup, topup.priceAmount);
      await this.events.record(tx, [
        {
          type: 'order.topup.completed',
          ...(await about(tx, topup)),
          data: {
            ...identity(topup, esim),
            data_added_bytes: topup.dataAddedBytes,
            validity_added_days: topup.validityAddedDays,
          },
        },
      ]);
    });
  }

  private async applyTo(tx: Tx, topup: TopupEntity, result: Completed): Promise<EsimEntity> {
    const esim = await this.esims.findByIdForUpdate(tx, topup.esimId);
    if (!esim) throw new Error(`the eSIM of top-up ${topup.id} is gone`);
    return this.observer.apply(tx, esim, {
      kind: 'topped_up',
      dataBytes: topup.dataAddedBytes,
      validityDays: topup.validityAddedDays,
      upstreamTotalBytes: result.totalBytes,
      upstreamExpiresAt: result.expiresAt,
    });
  }

  /** Captures `capturedAmount` of what was held and releases the rest (D27). */
  private async settle(tx: Tx, topup: TopupEntity, capturedAmount: number): Promise<void> {
    await this.wallet.settle(tx, { mode: topup.mode, subject: { topupId: topup.id }, capturedAmount });
  }

  private async fail(
    lease: TopupLease,
    topup: TopupEntity,
    esim: EsimEntity,
    failure: ProviderFailure,
  ): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.queue.markFailed(tx, lease, failure))) return;
      await this.settle(tx, topup, 0);
      await this.events.record(tx, [
        {
          type: 'order.topup.failed',
          ...(await about(tx, topup)),
          data: { ...identity(topup, esim), code: failure.code, reason: failure.reason },
        },
      ]);
      // The next one must not be sold at a price that the upstream has just refused.
      if (failure.code === 'price_changed') await this.refreshCatalog.execute(tx, topup.createdAt);
    });
  }
}

/** Why a top-up fails that has not left for the upstream when its eSIM has ended. */
const ENDED: Readonly<Partial<Record<EsimEntity['status'], ProviderFailure>>> = {
  expired: { code: 'esim_expired', reason: 'The eSIM expired before the top-up was applied.' },
  canceled: { code: 'topup_not_supported', reason: 'The eSIM was canceled before the top-up was applied.' },
};

async function about(
  tx: Tx,
  topup: TopupEntity,
): Promise<{ partnerId: string; mode: TopupEntity['mode']; happenedAt: Date }> {
  return { partnerId: topup.partnerId, mode: topup.mode, happenedAt: await databaseNow(tx) };
}

function identity(
  topup: TopupEntity,
  esim: EsimEntity,
): Omit<EventData['order.topup.failed'], 'code' | 'reason'> {
  return {
    topup_id: topup.id,
    esim_id: esim.id,
    order_id: esim.orderId,
    iccid: esim.iccid,
    package_id: topup.packageId,
    reference: topup.reference,
  };
}
