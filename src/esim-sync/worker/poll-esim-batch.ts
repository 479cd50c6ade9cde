import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { type EsimEntity, EsimObserver, EsimsRepository, type UsageReport } from '../../esims/index.js';
import { handleApart } from '../../infra/batcher.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { callProvider, type ProviderUsageReport, ProviderRegistry } from '../../providers/index.js';
import { type EsimPoll, EsimPollsRepository, type PollBatch } from '../esim-polls.repository.js';
import { IN_USE_MS, pollDelayMs } from '../poll-plan.js';

/**
 * Poll interval after an unusable reading, even for a dormant eSIM. All 60,000 dormant eSIMs of the plan would need 2.8
 * calls/s, which the other half of the slots covers.
 */
const UNREAD_MS = IN_USE_MS;

type Readings = ReadonlyMap<string, ProviderUsageReport>;

/** Queries a provider about a batch of eSIMs, then writes the readings and the next poll times in one transaction. */
@Injectable()
export class PollEsimBatch {
  constructor(
    private readonly providers: ProviderRegistry,
    private readonly polls: EsimPollsRepository,
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly transactions: Transactions,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable when nothing was read; a database error */
  async poll(batch: PollBatch, stopping: AbortSignal): Promise<void> {
    const liveProvider = this.providers.getLiveProvider(batch.provider);
    const found = await callProvider(liveProvider, (signal) =>
      liveProvider.fetchUsage(batch.polls, AbortSignal.any([signal, stopping])),
    );
    const readings = new Map(found.map((reading) => [reading.providerEsimId, reading]));
    await this.recordApart(batch, readings);
    const unknown = batch.polls.filter((poll) => !readings.has(poll.providerEsimId)).length;
    const { provider, source } = batch;
    this.logger.debug({ event: 'esims.read', provider, source, read: readings.size, unknown });
  }

  /**
   * Records all readings in one transaction. If one eSIM's reading cannot be stored, records the others without it
   * (D43).
   */
  private recordApart(batch: PollBatch, readings: Readings): Promise<void> {
    return handleApart(batch.polls, {
      handle: (polls) => this.transactions.run((tx) => this.record(tx, { ...batch, polls }, readings)),
      failed: async (poll, error) => {
        const { esimId } = poll;
        const line = { event: 'esims.reading_refused', esimId, provider: batch.provider, err: error };
        this.logger.error(line, 'failed to store reading; the eSIM will be polled again');
        await this.polls.giveBack({ ...batch, polls: [poll] }, UNREAD_MS);
      },
    });
  }

  /** Locks orders before eSIMs, and those by id (D40). */
  private async record(tx: Tx, batch: PollBatch, readings: Readings): Promise<void> {
    const isCanceled = (poll: EsimPoll) => readings.get(poll.providerEsimId)?.status === 'canceled';
    const left = await this.polls.listInCancellation(
      tx,
      batch.polls.filter(isCanceled).map((poll) => poll.esimId),
    );
    const held = await this.polls.holdForUpdate(tx, batch.polls);
    const esims = await this.esims.listByIdsForUpdate(tx, [...held]);
    const observed = esims.flatMap((esim) => {
      const reading = left.has(esim.id) ? undefined : readings.get(esim.providerEsimId);
      return reading ? [{ esim, report: this.toReport(batch, esim, reading) }] : [];
    });
    await this.observer.applyUsageReports(tx, observed);
    await this.schedule(tx, batch, { esims, readings });
  }

  private toReport(
    { source, askedAt }: PollBatch,
    esim: EsimEntity,
    reading: ProviderUsageReport,
  ): UsageReport {
    if (reading.totalBytes !== null && reading.totalBytes !== esim.totalBytes) {
      // Our record of purchases is authoritative. A top-up in progress may explain the difference for a while.
      const { id: esimId, orderId, totalBytes: bought } = esim;
      const line = { event: 'esim.total_differs', esimId, orderId, bought };
      this.logger.warn({ ...line, upstream: reading.totalBytes });
    }
    return { reading, source, askedAt };
  }

  private async schedule(
    tx: Tx,
    { polls, askedAt }: PollBatch,
    { esims, readings }: { readonly esims: readonly EsimEntity[]; readonly readings: Readings },
  ): Promise<void> {
    const pollOf = new Map(polls.map((poll) => [poll.esimId, poll]));
    const next = esims.map((esim) => {
      // A top-up applied during the query needs another poll.
      const isTooEarly = esim.toppedUpAt !== null && esim.toppedUpAt > askedAt;
      const planned = pollDelayMs(esim, askedAt);
      const isUnread = planned !== null && !readings.has(esim.providerEsimId);
      const delayMs = isTooEarly ? 0 : isUnread ? Math.min(planned, UNREAD_MS) : planned;
      return { poll: pollOf.get(esim.id)!, delayMs };
    });
    await this.polls.schedule(tx, next);
  }
}
