import { Inject, Injectable } from '@nestjs/common';
import { ACTIVITY_DAYS, APP_CONFIG, type AppConfig } from '../../config/index.js';
import { purgeInSteps } from '../../infra/purge-in-steps.js';
import { AFTER_START_MS, Sweeps } from '../../infra/sweeps.js';
import { ActivityRepository } from '../activity.repository.js';

/** People read the figures, so half a minute does not matter. */
const SWEEPS_BETWEEN = 15;
const PURGE_EVERY_MS = 600_000;

/** Counts orders and top-ups by quarter-hour: one statement for all partners, whatever they bought in the meantime. */
@Injectable()
export class RollUpActivity {
  constructor(
    private readonly activity: ActivityRepository,
    @Inject(APP_CONFIG) { sweepIntervalMs }: Pick<AppConfig, 'sweepIntervalMs'>,
    sweeps: Sweeps,
  ) {
    const intervalMs = sweepIntervalMs * SWEEPS_BETWEEN;
    sweeps.register({
      name: 'overview.activity',
      intervalMs,
      firstAfterMs: AFTER_START_MS,
      // Another worker may have counted a moment ago.
      run: (stopping) => this.count(stopping, intervalMs / 2),
    });
    sweeps.register({
      name: 'overview.purge',
      intervalMs: PURGE_EVERY_MS,
      firstAfterMs: AFTER_START_MS,
      run: (stopping) => purgeInSteps((limit) => activity.purge(ACTIVITY_DAYS, limit), { stopping }),
    });
  }

  /** Counts everything until now. After a long pause that takes several steps. */
  async count(stopping: AbortSignal, unlessWithinMs = 0): Promise<void> {
    let isBehind = await this.activity.count(Math.floor(unlessWithinMs));
    while (isBehind && !stopping.aborted) isBehind = await this.activity.count(0);
  }
}
