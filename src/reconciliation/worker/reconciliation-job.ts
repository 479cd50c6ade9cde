import { Inject, Injectable } from '@nestjs/common';
import type { Registry } from 'prom-client';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { showReading, showReadings } from '../../infra/kept-reading.js';
import { METRICS } from '../../infra/metrics.js';
import { Sweeps } from '../../infra/sweeps.js';
import { ReconciliationRunsRepository } from './reconciliation-runs.repository.js';
import { RunReconciliation } from './run-reconciliation.js';

/** Check interval: a failed run continues after this, and a new process leaves its first minutes to other work. */
const LOOK_EVERY_MS = 600_000;

/** Checks regularly whether a comparison is due; another worker continues a run when this one shuts down. */
@Injectable()
export class ReconciliationJob {
  private isFirstLook = true;

  constructor(
    @Inject(APP_CONFIG) { reconcileIntervalMs }: Pick<AppConfig, 'reconcileIntervalMs'>,
    sweeps: Sweeps,
    private readonly reconciliation: RunReconciliation,
  ) {
    sweeps.register({
      name: 'reconciliation',
      intervalMs: Math.min(reconcileIntervalMs, LOOK_EVERY_MS),
      run: (stopping) => this.look(stopping),
    });
  }

  private async look(stopping: AbortSignal): Promise<void> {
    const skips = this.isFirstLook || stopping.aborted;
    this.isFirstLook = false;
    if (!skips) await this.reconciliation.runIfDue(stopping);
  }
}

/** Metrics for operators: every worker shows the database's last completed run; absent before the first. */
@Injectable()
export class ReconciliationMetrics {
  constructor(@Inject(METRICS) registry: Registry, runs: ReconciliationRunsRepository) {
    showReading(
      registry,
      {
        name: 'reconciliation_differences',
        help: 'Differences found by the last completed reconciliation; absent before the first one.',
      },
      () => runs.countLastDifferences(),
    );
    showReadings(
      registry,
      {
        name: 'reconciliation_check_differences',
        help: 'Differences found by the last completed reconciliation, by check. A check without differences is absent.',
        label: 'check',
      },
      () => runs.countLastDifferencesByCheck(),
    );
    showReading(
      registry,
      {
        name: 'reconciliation_age_seconds',
        help: 'Seconds since the last completed reconciliation; absent before the first one.',
      },
      () => runs.ageOfLastCompletedSeconds(),
    );
  }
}
