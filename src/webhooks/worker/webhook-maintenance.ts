import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig, MIN_HELD_DAYS } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { runEach } from '../../infra/run-each.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EndpointStatsRepository } from '../endpoint-stats.repository.js';
import { BacklogRepository, type GivingUp } from './backlog.repository.js';

const PURGE_EVERY_MS = 600_000;
const DISCARD_BATCH = 1_000;
const MAX_DISCARD_BATCHES = 50;

/** What a purge counts, and its step of at most `limit` rows. */
type PurgePart = readonly [
  what: 'held' | 'replays' | 'endpoints' | 'stats',
  step: (limit: number) => Promise<number>,
];

/** Writes down what endpoints have given up (D32), and purges what is past its retention (D44). */
@Injectable()
export class WebhookMaintenance {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'retention' | 'sweepIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly backlog: BacklogRepository,
    private readonly stats: EndpointStatsRepository,
    sweeps: Sweeps,
  ) {
    sweeps.register({
      name: 'webhooks.purge',
      intervalMs: PURGE_EVERY_MS,
      run: (stopping) => this.purge(stopping),
    });
    sweeps.register({
      name: 'webhooks.discards',
      intervalMs: config.sweepIntervalMs,
      run: (stopping) => this.discard(stopping),
    });
  }

  /**
   * What is held past its retention becomes `discarded`, never before MIN_HELD_DAYS (D32), and stays in the log for as
   * long again; replays that have ended and endpoints that were deleted go.
   * @throws AggregateError after all of it was tried, when a part failed
   */
  async purge(stopping?: AbortSignal): Promise<void> {
    const { eventDays, replayDays, deletedEndpointDays, endpointStatsDays } = this.config.retention;
    const counts = { held: 0, replays: 0, endpoints: 0, stats: 0 };
    const parts: readonly PurgePart[] = [
      ['held', (limit) => this.discardHeld('sandbox', eventDays.sandbox, limit)],
      ['held', (limit) => this.discardHeld('live', eventDays.live, limit)],
      ['replays', (limit) => this.backlog.purgeReplays(replayDays, limit)],
      ['endpoints', (limit) => this.backlog.purgeEndpoints(deletedEndpointDays, limit)],
      ['stats', (limit) => this.stats.purge(endpointStatsDays, limit)],
    ];
    const runPart = async ([what, step]: PurgePart): Promise<void> => {
      counts[what] += await purgeInSteps(step, { stopping });
    };
    try {
      await runEach(parts, runPart, { stopping, failed: ([what], error) => this.warn({ what }, error) });
    } finally {
      if (Object.values(counts).some((count) => count > 0))
        this.logger.info({ event: 'webhook.purged', ...counts }, 'past their retention');
    }
  }

  private discardHeld(mode: Mode, days: number, limit: number): Promise<number> {
    return this.backlog.discardHeld(mode, Math.max(days, MIN_HELD_DAYS), limit);
  }

  private async discard(stopping: AbortSignal): Promise<void> {
    const parts: readonly (() => Promise<unknown>)[] = [
      () => this.discardAll(stopping),
      () => this.backlog.forgetOldDiscards(),
      () => this.backlog.endAbandoned(DISCARD_BATCH),
    ];
    await runEach(parts, (run) => run(), { stopping });
  }

  private async discardAll(stopping: AbortSignal): Promise<void> {
    await runEach(await this.backlog.listGivingUp(), (each) => this.discardOf(each, stopping), {
      stopping,
      failed: ({ endpointId }, error) => this.warn({ what: 'discard', endpointId }, error),
    });
  }

  private async discardOf({ endpointId, before }: GivingUp, stopping: AbortSignal): Promise<void> {
    let discarded = 0;
    // What is due after the discard goes first: claims read on from there, and would meet it.
    for (const dueFrom of [before, null]) {
      const write = (limit: number): Promise<number> =>
        this.backlog.writeDiscards(endpointId, limit, dueFrom);
      discarded += await this.inBatches(write, stopping);
    }
    if (discarded > 0) this.logger.info({ event: 'webhook.discarded', endpointId, count: discarded });
  }

  private async inBatches(write: (limit: number) => Promise<number>, stopping: AbortSignal): Promise<number> {
    let written = 0;
    for (let batch = 0; batch < MAX_DISCARD_BATCHES && !stopping.aborted; batch++) {
      const count = await write(DISCARD_BATCH);
      written += count;
      if (count < DISCARD_BATCH) break;
    }
    return written;
  }

  private warn(of: { readonly what: string; readonly endpointId?: string }, error: unknown): void {
    this.logger.warn({ event: 'webhook.maintenance_failed', ...of, err: error }, 'trying again');
  }
}
