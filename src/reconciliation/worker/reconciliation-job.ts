import { Inject, Injectable } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { METRICS } from '../../infra/metrics.js';
import { Sweeps } from '../../infra/sweeps.js';
import { ReconciliationRunsRepository } from './reconciliation-runs.repository.js';
import { RunReconciliation } from './run-reconciliation.js';

/** A run that failed is gone on with after this, and a new process leaves its first minutes to other work. */
const LOOK_EVERY_MS = 600_000;

/** Looks now and then whether the books are to be compared; what runs when the worker stops is left to another. */
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

/** What operators watch: every worker shows the last run of the whole database. */
@Injectable()
export class ReconciliationMetrics {
  constructor(@Inject(METRICS) registry: Registry, runs: ReconciliationRunsRepository) {
    new Gauge({
      name: 'reconciliation_differences',
      help: 'Differences that the last completed reconciliation found; absent before the first.',
      registers: [registry],
      async collect() {
        this.reset();
        const differences = await runs.countLastDifferences();
        // A gauge without labels is 0 after a reset; before the first run nothing is known.
        if (differences === null) this.remove();
        else this.set(differences);
      },
    });
  }
}
