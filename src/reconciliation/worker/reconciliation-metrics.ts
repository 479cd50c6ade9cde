import { Inject, Injectable } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { METRICS } from '../../infra/metrics.js';
import { ReconciliationRunsRepository } from './reconciliation-runs.repository.js';

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
