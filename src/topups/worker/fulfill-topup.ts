import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { perMode } from '../../common/mode.js';
import { type EsimEntity, EsimsRepository } from '../../esims/index.js';
import { Batcher } from '../../infra/batcher.js';
import { Transactions } from '../../infra/database/index.js';
import { LOCKING_BATCHES } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { currentTraceparent } from '../../infra/tracing/index.js';
import { EsimPurchasesRepository, type ProviderFailure, ProviderRegistry } from '../../providers/index.js';
import { type ClaimedPurchase, FindOrPlace, PurchaseEnds } from '../../purchases/index.js';
import { CompleteTopup, type TopupEnd } from '../complete-topup.js';
import { TopupJobsRepository } from '../topup-jobs.repository.js';
import { toProviderTopupRequest, type TopupEntity, TOPUPS } from '../topup.js';

/** Failure of a top-up whose eSIM ended before anything was sent to the provider. */
const ENDED: Readonly<Partial<Record<EsimEntity['status'], ProviderFailure>>> = {
  expired: { code: 'esim_expired', reason: 'The eSIM expired before the top-up was applied.' },
  canceled: { code: 'topup_not_supported', reason: 'The eSIM was canceled before the top-up was applied.' },
};

/**
 * Brings a processing top-up to its outcome. One provider call runs outside any transaction. One transaction then
 * writes the top-up's status, the change of its eSIM, its charge and its event, together with other top-ups that end
 * now. If the process is killed at any point, the top-up is processed again with the same reference (D19).
 *
 * An eSIM may end between acceptance and here. If nothing was sent to the provider yet, the top-up fails and costs
 * nothing. Once the provider has applied it, the money is spent: the top-up completes, and the ended eSIM stays ended.
 */
@Injectable()
export class FulfillTopup {
  /** Reads the eSIMs of all top-ups of one claim in one statement. */
  private readonly esims = perMode(
    () =>
      new Batcher<string, EsimEntity | null>({
        ...LOCKING_BATCHES,
        gather: 2,
        handle: (ids) => this.esimRows.findAllById(ids),
      }),
  );

  private readonly provider: FindOrPlace<TopupEntity>;
  private readonly ends: PurchaseEnds<TopupEnd>;

  constructor(
    private readonly jobs: TopupJobsRepository,
    private readonly esimRows: EsimsRepository,
    private readonly purchases: EsimPurchasesRepository,
    providers: ProviderRegistry,
    transactions: Transactions,
    complete: CompleteTopup,
    @Inject(LOGGER) logger: Logger,
  ) {
    this.provider = new FindOrPlace(providers, jobs);
    this.ends = new PurchaseEnds(TOPUPS, transactions, (tx, ends) => complete.completeAll(tx, ends), logger);
  }

  /**
   * Returns whether the top-up has ended.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable: the top-up stays processing
   */
  async fulfill(claimed: ClaimedPurchase<TopupEntity>): Promise<boolean> {
    const { purchase: topup } = claimed;
    const end = { lease: claimed, topup, traceparent: currentTraceparent() };
    const esim = await this.esims[topup.mode].add(topup.esimId);
    if (!esim) throw new Error(`the eSIM ${topup.esimId} is gone`);
    const failure = ENDED[esim.status];
    if (failure && claimed.neverPlaced) {
      await this.ends.add(topup.mode, { ...end, result: { state: 'rejected', failure } });
      return true;
    }
    const request = toProviderTopupRequest(topup, esim, this.purchases);
    const result = await this.provider.findOrPlace(claimed, {
      find: (provider, signal) => provider.findTopup(request, signal),
      place: (provider, placement, signal) => provider.placeTopup(request, placement, signal),
    });
    switch (result?.state) {
      case undefined:
        return false;
      case 'in_progress':
        await this.jobs.postpone(claimed, result.checkAfterMs);
        return false;
      case 'rejected':
      case 'completed':
        await this.ends.add(topup.mode, { ...end, result });
        return true;
    }
  }
}
