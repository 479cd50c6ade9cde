import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Mode } from '../../common/mode.js';
import { APP_CONFIG, type AppConfig, MIN_HELD_DAYS } from '../../config/index.js';
import { LOGGER } from '../../infra/logging.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { Sweeps } from '../../infra/sweeps.js';
import { EndpointStatsRepository } from '../endpoint-stats.repository.js';
import { BacklogRepository } from './backlog.repository.js';

const PURGE_EVERY_MS = 600_000;
const DISCARD_BATCH = 1_000;
const MAX_DISCARD_BATCHES = 50;

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
   */
  async purge(stopping?: AbortSignal): Promise<void> {
    const { eventDays, replayDays, deletedEndpointDays, endpointStatsDays } = this.config.retention;
    const counts = {
      held:
        (await this.discardHeld('sandbox', eventDays.sandbox, stopping)) +
        (await this.discardHeld('live', eventDays.live, stopping)),
      replays: await purgeInSteps((limit) => this.backlog.purgeReplays(replayDays, limit), { stopping }),
      endpoints: await purgeInSteps((limit) => this.backlog.purgeEndpoints(deletedEndpointDays, limit), {
        stopping,
      }),
      stats: await purgeInSteps((limit) => this.stats.purge(endpointStatsDays, limit), { stopping }),
    };
    if (counts.held + counts.replays + counts.endpoints + counts.stats > 0)
      this.logger.info({ event: 'webhook.purged', ...counts }, 'past their retention');
  }

  private async discardHeld(mode: Mode, days: number, stopping?: AbortSignal): Promise<number> {
    const heldDays = Math.max(days, MIN_HELD_DAYS);
    return purgeInSteps((limit) => this.backlog.discardHeld(mode, heldDays, limit), { stopping });
  }

  private async discard(stopping: AbortSignal): Promise<void> {
    for (const endpointId of await this.backlog.listGivingUp()) await this.discardOf(endpointId, stopping);
    if (stopping.aborted) return;
    await this.backlog.forgetOldDiscards();
    await this.backlog.endAbandoned(DISCARD_BATCH);
  }

  private async discardOf(endpointId: string, stopping: AbortSignal): Promise<void> {
    let discarded = 0;
    for (let batch = 0; batch < MAX_DISCARD_BATCHES && !stopping.aborted; batch++) {
      const count = await this.backlog.writeDiscards(endpointId, DISCARD_BATCH);
      discarded += count;
      if (count < DISCARD_BATCH) break;
    }
    if (discarded > 0) this.logger.info({ event: 'webhook.discarded', endpointId, count: discarded });
  }
}
