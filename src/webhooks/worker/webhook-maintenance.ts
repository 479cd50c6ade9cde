import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { APP_CONFIG, type AppConfig, MIN_HELD_DAYS } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { runEach } from '../../infra/run-each.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';
import { EndpointStatsRepository } from '../endpoint-stats.repository.js';
import { BacklogRepository } from './backlog.repository.js';
import { DiscardDeliveries } from './discard-deliveries.js';
import { DiscardsRepository, type GivingUp } from './discards.repository.js';

const PURGE_EVERY_MS = 600_000;
/** Steps per endpoint and run, so that the others get their turn. */
const MAX_DISCARD_STEPS = 50;

/** Name of a purge for the metrics, and the function that runs it. */
type PurgePart = readonly [what: 'held' | 'jobs' | 'endpoints' | 'stats', purge: () => Promise<number>];

/** Applies endpoints' discards to their deliveries (D32), and purges data past its retention (D44). */
@Injectable()
export class WebhookMaintenance {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention' | 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly backlog: BacklogRepository,
    private readonly discards: DiscardsRepository,
    private readonly discardDeliveries: DiscardDeliveries,
    private readonly stats: EndpointStatsRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'webhooks.purge',
      intervalMs: PURGE_EVERY_MS,
      firstAfterMs: AFTER_START_MS,
      run: (stopping) => this.purge(stopping),
    });
    sweeps.register({
      name: 'webhooks.discards',
      intervalMs: config.sweepIntervalMs,
      run: (stopping) => this.discard(stopping),
    });
  }

  /**
   * Marks deliveries held past their retention as `discarded`, never before MIN_HELD_DAYS (D32); they stay in the log
   * for the same time again. Deletes ended backlog jobs and deleted endpoints.
   * @throws AggregateError after every part was tried, when one failed
   */
  async purge(stopping?: AbortSignal): Promise<void> {
    const { eventDays, replayDays, deletedEndpointDays, endpointStatsDays } = this.config.retention;
    const counts = { held: 0, jobs: 0, endpoints: 0, stats: 0 };
    const held = (mode: 'sandbox' | 'live') => (): Promise<number> => {
      const days = Math.max(eventDays[mode], MIN_HELD_DAYS);
      return this.discardDeliveries.discard({ of: 'held', mode, days }, { stopping });
    };
    const inSteps = (step: (limit: number) => Promise<number>) => (): Promise<number> =>
      purgeInSteps(step, { stopping });
    const parts: readonly PurgePart[] = [
      ['held', held('sandbox')],
      ['held', held('live')],
      ['jobs', inSteps((limit) => this.backlog.purgeJobs(replayDays, limit))],
      ['endpoints', inSteps((limit) => this.backlog.purgeEndpoints(deletedEndpointDays, limit))],
      ['stats', inSteps((limit) => this.stats.purge(endpointStatsDays, limit))],
    ];
    const runPart = async ([what, purge]: PurgePart): Promise<void> => {
      counts[what] += await purge();
    };
    try {
      await runEach(parts, runPart, { stopping, failed: ([what], error) => this.warn({ what }, error) });
    } finally {
      if (Object.values(counts).some((count) => count > 0))
        this.logger.info({ event: 'webhook.purged', ...counts }, 'past retention');
    }
  }

  private async discard(stopping: AbortSignal): Promise<void> {
    const parts: readonly (() => Promise<unknown>)[] = [
      () => this.discardAll(stopping),
      () => this.discards.forgetOld(),
      () => this.discardDeliveries.discard({ of: 'abandoned' }, { stopping }),
    ];
    await runEach(parts, (run) => run(), { stopping });
  }

  private async discardAll(stopping: AbortSignal): Promise<void> {
    await runEach(await this.discards.listGivingUp(), (each) => this.discardOf(each, stopping), {
      stopping,
      failed: ({ endpointId }, error) => this.warn({ what: 'discard', endpointId }, error),
    });
  }

  private async discardOf({ endpointId, before }: GivingUp, stopping: AbortSignal): Promise<void> {
    let discarded = 0;
    const limits = { stopping, maxSteps: MAX_DISCARD_STEPS };
    const discardFrom = async (dueFrom: string | null): Promise<void> => {
      discarded += await this.discardDeliveries.discard({ of: 'endpoint', endpointId, dueFrom }, limits);
    };
    try {
      // Start with deliveries due after the discard: claims read from there and would meet them.
      await runEach([before, null], discardFrom, { stopping });
    } finally {
      if (discarded > 0) this.logger.info({ event: 'webhook.discarded', endpointId, count: discarded });
    }
  }

  private warn(of: { readonly what: string; readonly endpointId?: string }, error: unknown): void {
    this.logger.warn({ event: 'webhook.maintenance_failed', ...of, err: error }, 'retrying');
  }
}
