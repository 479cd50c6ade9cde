import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Alerts } from '../../alerts/index.js';
import { DAY_MS } from '../../common/durations.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Transactions } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import { Reconcile } from '../reconcile.js';
import { type HeldRun, ReconciliationRunsRepository } from './reconciliation-runs.repository.js';
import { RunJournal, RunTakenOver } from './run-journal.js';

/** A lease is renewed often enough that one missed renewal does not lose it. */
const RENEWALS_PER_LEASE = 3;

/**
 * One scheduled comparison: stored in a table, logged, and reported to support if it concerns an order or a top-up. Its
 * worker renews a lease; when the worker dies, another continues at the cursors (D27). The provider comparison covers
 * one day more than the interval, so that changes during one run are compared by the next.
 */
@Injectable()
export class RunReconciliation {
  constructor(
    @Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'reconcileIntervalMs' | 'leaseMs'>,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly reconcile: Reconcile,
    private readonly runs: ReconciliationRunsRepository,
    private readonly alerts: Alerts,
    private readonly transactions: Transactions,
  ) {}

  /** Returns whether a run was due. @throws a database error; RunTakenOver; the abort reason of `stopping` */
  async runIfDue(stopping: AbortSignal): Promise<boolean> {
    const { reconcileIntervalMs, leaseMs } = this.config;
    const run = await this.transactions.run((tx) => this.runs.claim(tx, reconcileIntervalMs, leaseMs));
    if (run === null) return false;
    const lost = new AbortController();
    const renewal = setInterval(() => void this.renew(run, lost), leaseMs / RENEWALS_PER_LEASE);
    try {
      await this.goOn(run, AbortSignal.any([stopping, lost.signal]));
    } catch (error) {
      await this.release(run);
      throw error;
    } finally {
      clearInterval(renewal);
    }
    return true;
  }

  private async goOn(run: HeldRun, stopping: AbortSignal): Promise<void> {
    const { runs, alerts, transactions, logger } = this;
    const progress = await runs.listProgress(run.id);
    const journal = new RunJournal(run, progress, { runs, alerts, transactions, logger });
    const since = await this.changedSince(run);
    await this.reconcile.reconcile({ since, journal, stopping });
    await journal.complete();
  }

  /** Runs may take days: changes made during the last completed one are compared again. */
  private async changedSince({ startedAt }: HeldRun): Promise<Date> {
    const usual = startedAt.getTime() - this.config.reconcileIntervalMs;
    const last = (await this.runs.startOfLastCompleted())?.getTime() ?? usual;
    return new Date(Math.min(usual, last) - DAY_MS);
  }

  /** If the database is down as well, the lease lapses by itself. */
  private async release(run: HeldRun): Promise<void> {
    try {
      await this.runs.release(run);
    } catch (error) {
      this.logger.warn({ event: 'reconciliation.not_released', err: error });
    }
  }

  private async renew(run: HeldRun, lost: AbortController): Promise<void> {
    try {
      if (!(await this.runs.renew(run, this.config.leaseMs))) lost.abort(new RunTakenOver());
    } catch (error) {
      // The next renewal may succeed; if none does, the fence stops this worker's writes.
      this.logger.warn({ event: 'reconciliation.not_renewed', err: error });
    }
  }
}
