import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { Alerts } from '../../alerts/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions, type Tx } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { METRICS } from '../../infra/metrics.js';
import { Sweeps } from '../../infra/sweeps.js';
import type { Difference } from '../difference.js';
import { Reconcile, type ReconciliationReport } from '../reconcile.js';
import { countUnanswered } from '../render-report.js';
import { ReconciliationRunsRepository } from './reconciliation-runs.repository.js';

const DAY_MS = 86_400_000;
const MAX_LOGGED = 100;
/** What waits too long has alerts of its own. */
const ALERTED_ELSEWHERE: readonly string[] = ['order_is_not_stuck', 'topup_is_not_stuck'];

/**
 * One scheduled comparison: kept in a table, logged, and told to support where it is about an order or a top-up. The
 * providers are asked about a day more than the interval, so that what changed under one run is compared by the next.
 */
@Injectable()
export class RunReconciliation {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'reconcileIntervalMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly reconcile: Reconcile,
    private readonly runs: ReconciliationRunsRepository,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
  ) {}

  /** Answers whether a run was due. @throws Error of the database; whatever `stopping` was aborted with */
  async runIfDue(stopping: AbortSignal): Promise<boolean> {
    const { reconcileIntervalMs } = this.config;
    const id = await this.transactions.run((tx) => this.runs.begin(tx, reconcileIntervalMs));
    if (id === null) return false;
    try {
      const providerWindowMs = reconcileIntervalMs + DAY_MS;
      const report = await this.reconcile.execute({ providerWindowMs, stopping });
      await this.transactions.run((tx) => this.keep(tx, id, report));
      this.log(report);
    } catch (error) {
      await this.transactions.run((tx) => this.runs.fail(tx, id));
      throw error;
    }
    return true;
  }

  private async keep(tx: Tx, id: string, report: ReconciliationReport): Promise<void> {
    await this.runs.complete(tx, id, report);
    for (const difference of report.differences) await this.alert(tx, difference);
  }

  private async alert(tx: Tx, difference: Difference): Promise<void> {
    const { check, subject, what, expected, found, advice } = difference;
    const { order, topup, partner } = subject;
    const subjectId = order ?? topup;
    if (subjectId === undefined || ALERTED_ELSEWHERE.includes(check)) return;
    await this.alerts.raise(tx, {
      type: order === undefined ? 'topup.needs_review' : 'order.needs_review',
      partnerId: partner ?? null,
      subjectId,
      details: { reconciliation: check, what, expected, found, advice },
      // The same difference is found every day until it is settled.
      onceKey: `reconciliation:${check}`,
    });
  }

  private log(report: ReconciliationReport): void {
    const { checked, differences, upstreams, durationMs } = report;
    for (const { check, severity, subject, expected, found } of differences.slice(0, MAX_LOGGED))
      this.logger[severity === 'error' ? 'error' : 'warn']({
        event: 'reconciliation.difference',
        ...{ check, subject, expected, found },
      });
    const asked = upstreams.map(({ provider, orders, topups }) => ({ provider, orders, topups }));
    const unanswered = countUnanswered(report);
    this.logger.info({
      event: 'reconciliation.done',
      ...{ checked, differences: differences.length, unanswered, upstreams: asked, durationMs },
    });
  }
}

/** A run that failed is tried again after this, and a new process leaves its first minutes to other work. */
const LOOK_EVERY_MS = 600_000;

/** Looks now and then whether the books are to be compared; whatever runs when the worker stops is given up. */
@Injectable()
export class ReconciliationJob implements OnModuleDestroy {
  private readonly stopping = new AbortController();
  private isFirstLook = true;

  constructor(
    @Inject(APP_CONFIG) { reconcileIntervalMs }: Pick<AppConfig, 'reconcileIntervalMs'>,
    sweeps: Sweeps,
    private readonly reconciliation: RunReconciliation,
  ) {
    sweeps.register({
      name: 'reconciliation',
      intervalMs: Math.min(reconcileIntervalMs, LOOK_EVERY_MS),
      run: () => this.look(),
    });
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  private async look(): Promise<void> {
    const skips = this.isFirstLook || this.stopping.signal.aborted;
    this.isFirstLook = false;
    if (!skips) await this.reconciliation.runIfDue(this.stopping.signal);
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
