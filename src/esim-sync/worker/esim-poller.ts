import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { type JobEnd, JobRunner } from '../../infra/jobs/index.js';
import { ProviderOutcomeUnknown, ProviderRegistry, ProviderUnavailable } from '../../providers/index.js';
import { EsimPollsRepository, type PollBatch } from '../esim-polls.repository.js';
import { PollNotifier } from '../callbacks/take-callback.js';
import { PollEsimBatch } from './poll-esim-batch.js';

/**
 * Small enough that a provider also returns the times of its counters, and that a hint does not wait for a long batch.
 */
const HINTED_BATCH_SIZE = 10;
/** Number of sweeps between two polls: more eSIMs become due in the meantime, so more neighbors are read together. */
const SWEEPS_PER_POLL = 5;
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** Pause after a missing or unreadable response. */
const PAUSE_MS = 5_000;
const MAX_PROVIDERS = 64;

type Source = PollBatch['source'];

/**
 * Polls due eSIMs provider by provider: one hinted and one planned batch at a time, so that neither waits for the
 * other. A failing provider is paused, and its batches shrink.
 */
@Injectable()
export class EsimPoller implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly runners: Readonly<Record<Source, JobRunner<PollBatch>>>;
  private readonly stopping = new AbortController();
  /** Times of `performance.now()`. */
  private readonly pausedUntilMs = new Map<string, number>();
  private readonly batchSizes = new Map<string, number>();

  constructor(
    private readonly polls: EsimPollsRepository,
    private readonly batches: PollEsimBatch,
    private readonly providers: ProviderRegistry,
    private readonly notifier: PollNotifier,
    @Inject(APP_CONFIG)
    private readonly config: Pick<AppConfig, 'sweepIntervalMs' | 'leaseMs' | 'shutdownTimeoutMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.runners = {
      callback: this.runnerOf('callback', 'esims.hints', config.sweepIntervalMs),
      poll: this.runnerOf('poll', 'esims.polls', config.sweepIntervalMs * SWEEPS_PER_POLL),
    };
  }

  onApplicationBootstrap(): void {
    this.notifier.onNotify((provider) => this.runners.callback.notify(provider));
    for (const runner of Object.values(this.runners)) runner.start();
  }

  /** Aborts queries in progress: their eSIMs are due again at once. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await Promise.all(Object.values(this.runners).map((runner) => runner.stop()));
  }

  /**
   * A group is a provider. Only the sweep triggers claims. A batch never outlives its lease, because it has a timeout.
   */
  private runnerOf(source: Source, name: string, sweepIntervalMs: number): JobRunner<PollBatch> {
    const { leaseMs, shutdownTimeoutMs } = this.config;
    return new JobRunner(
      {
        claim: async (provider) => ({
          items: await this.claim(source, provider),
          nextDueInMs: null,
          more: true,
        }),
        listGroupsDue: () =>
          Promise.resolve(this.providers.liveProviders.map((liveProvider) => liveProvider.name)),
        renew: () => Promise.resolve(),
      },
      (batch) => this.run(batch),
      {
        name,
        concurrencyPerGroup: 1,
        concurrency: MAX_PROVIDERS,
        sweepIntervalMs,
        leaseMs,
        drainMs: shutdownTimeoutMs,
        recordMs: 0,
        logger: this.logger,
        notifyAt: () => undefined,
      },
    );
  }

  private async claim(source: Source, provider: string): Promise<readonly PollBatch[]> {
    if (this.stopping.signal.aborted || performance.now() < (this.pausedUntilMs.get(provider) ?? 0))
      return [];
    const { timeoutMs } = this.providers.getLiveProvider(provider);
    const batch = await this.polls.claim(source, {
      provider,
      limit: this.sizeOf(source, provider),
      timeoutMs,
    });
    return batch ? [batch] : [];
  }

  private async run(batch: PollBatch): Promise<JobEnd> {
    try {
      await this.batches.poll(batch, this.stopping.signal);
      this.batchSizes.set(batch.provider, this.sizeOf('poll', batch.provider) * 2);
    } catch (error) {
      await this.giveBack(batch, error);
    }
    return { refetch: true };
  }

  private async giveBack(batch: PollBatch, error: unknown): Promise<void> {
    const { provider, source } = batch;
    const isStopping = this.stopping.signal.aborted;
    const pauseMs = isStopping ? 0 : pauseAfter(error);
    if (!isStopping) {
      const known = error instanceof ProviderOutcomeUnknown || error instanceof ProviderUnavailable;
      this.logger[known ? 'warn' : 'error'](
        { event: 'esims.read_failed', provider, source, esims: batch.polls.length, pauseMs, err: error },
        'no reading from provider; retrying',
      );
      this.pausedUntilMs.set(provider, performance.now() + pauseMs);
      // Smaller batches get through when a large one times out.
      this.batchSizes.set(provider, Math.max(1, Math.floor(this.sizeOf('poll', provider) / 4)));
    }
    await this.polls.giveBack(batch, pauseMs);
  }

  private sizeOf(source: Source, provider: string): number {
    const { usageBatchSize } = this.providers.getLiveProvider(provider);
    const size = Math.min(usageBatchSize, this.batchSizes.get(provider) ?? usageBatchSize);
    return source === 'callback' ? Math.min(HINTED_BATCH_SIZE, size) : size;
  }
}

function pauseAfter(error: unknown): number {
  if (!(error instanceof ProviderUnavailable)) return PAUSE_MS;
  return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, error.retryAfterMs));
}
