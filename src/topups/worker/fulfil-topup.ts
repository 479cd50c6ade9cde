import { Injectable } from '@nestjs/common';
import { type EsimEntity, EsimsRepository } from '../../esims/index.js';
import { perMode } from '../../common/mode.js';
import { Batcher } from '../../infra/batcher.js';
import {
  LOCKING_BATCHES,
  lockWaitMs,
  type PlacementNote,
  type PlacementSlot,
} from '../../infra/jobs/index.js';
import { currentTraceparent } from '../../infra/tracing/index.js';
import {
  callProvider,
  type EsimProvider,
  EsimPurchasesRepository,
  type Placement,
  type ProviderFailure,
  ProviderRegistry,
  type ProviderTopupRequest,
  type ProviderTopupState,
  ProviderUnavailable,
} from '../../providers/index.js';
import { type ClaimedTopup, TopupJobsRepository, type TopupLease } from '../topup-jobs.repository.js';
import { toProviderTopupRequest, type TopupEntity } from '../topup.js';
import { TopupEnds } from './topup-ends.js';

const BATCHES = { ...LOCKING_BATCHES, gather: 2 } as const;

/**
 * Gets the provider's answer to a top-up without ever buying it twice. Not every provider takes a repeated reference
 * for the same top-up, so a placement is recorded before it is sent; once one may have been, the top-up is looked for
 * before it is placed again, and only a denial that outlives the read lag is believed (D19, D22).
 */
@Injectable()
export class FindOrPlaceTopup {
  /** What is about to be sent at the same time is recorded by one statement. */
  private readonly notes = perMode(
    () =>
      new Batcher<PlacementNote<TopupLease>, PlacementSlot | null>({
        ...BATCHES,
        handle: (notes, failures) => this.jobs.markAllPlaced(notes, lockWaitMs(failures)),
      }),
  );

  constructor(
    private readonly providers: ProviderRegistry,
    private readonly jobs: TopupJobsRepository,
    private readonly purchases: EsimPurchasesRepository,
  ) {}

  /**
   * Null when the lease is void: then nothing was sent.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  async execute(lease: TopupLease, topup: TopupEntity, esim: EsimEntity): Promise<ProviderTopupState | null> {
    const provider = this.providers.getByName(topup.provider);
    const request = toProviderTopupRequest(topup, esim, this.purchases);
    if (topup.upstreamPlacedAt === null) return this.place(lease, topup, provider, request, 'first');
    const found = await callProvider(provider, (signal) => provider.findTopup(request, signal));
    return found ?? this.place(lease, topup, provider, request, 'again');
  }

  private async place(
    lease: TopupLease,
    topup: TopupEntity,
    provider: EsimProvider,
    request: ProviderTopupRequest,
    placement: Placement,
  ): Promise<ProviderTopupState | null> {
    const slot = await this.notes[topup.mode].add({ lease, readLagMs: provider.readLagMs });
    if (slot === null) return null;
    if (slot.waitMs > 0) return { state: 'in_progress', checkAfterMs: slot.waitMs };
    try {
      return await callProvider(
        provider,
        (signal) => provider.placeTopup(request, placement, signal),
        slot.sendWindowStart,
      );
    } catch (error) {
      if (error instanceof ProviderUnavailable) await this.jobs.clearPlacement(lease, topup.upstreamPlacedAt);
      // It may have been bought: the read lag begins now, and the next attempt asks before it buys.
      else await this.jobs.touchPlacement(lease);
      throw error;
    }
  }
}

/** Why a top-up fails that has not left for the provider when its eSIM has ended. */
const ENDED: Readonly<Partial<Record<EsimEntity['status'], ProviderFailure>>> = {
  expired: { code: 'esim_expired', reason: 'The eSIM expired before the top-up was applied.' },
  canceled: { code: 'topup_not_supported', reason: 'The eSIM was canceled before the top-up was applied.' },
};

/**
 * Takes a processing top-up to its outcome: one provider call outside any transaction, then one transaction with the
 * top-up's status, the change of its eSIM, its charge and its event, and those of other top-ups that end now. Killed
 * anywhere, it is done again with the same reference (D19).
 *
 * An eSIM may end between acceptance and here. While nothing has left for the provider, the top-up fails and costs
 * nothing. Once the provider has applied it, the money is spent: it completes, and the ended eSIM stays ended.
 */
@Injectable()
export class FulfilTopup {
  /** The eSIMs of top-ups that one claim has leased are read by one statement. */
  private readonly esims = perMode(
    () =>
      new Batcher<string, EsimEntity | null>({
        ...BATCHES,
        handle: (ids) => this.esimRows.findAllById(ids),
      }),
  );

  constructor(
    private readonly findOrPlace: FindOrPlaceTopup,
    private readonly jobs: TopupJobsRepository,
    private readonly esimRows: EsimsRepository,
    private readonly ends: TopupEnds,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable without an answer: the top-up stays processing. */
  async execute(lease: ClaimedTopup): Promise<void> {
    const { topup } = lease;
    const traceparent = currentTraceparent();
    const esim = await this.esims[topup.mode].add(topup.esimId);
    if (!esim) throw new Error(`the eSIM ${topup.esimId} is gone`);
    const failure = ENDED[esim.status];
    if (failure && topup.upstreamPlacedAt === null)
      return this.ends.add({ lease, topup, traceparent, result: { state: 'rejected', failure } });
    const result = await this.findOrPlace.execute(lease, topup, esim);
    switch (result?.state) {
      case undefined:
        return;
      case 'in_progress':
        return this.jobs.postpone(lease, result.checkAfterMs);
      case 'rejected':
      case 'completed':
        return this.ends.add({ lease, topup, traceparent, result });
    }
  }
}
