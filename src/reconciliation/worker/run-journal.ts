import type { Logger } from 'pino';
import type { Alerts } from '../../alerts/index.js';
import type { Transactions, Tx } from '../../infra/database/index.js';
import type { Difference } from '../difference.js';
import {
  advance,
  AT_THE_BEGINNING,
  type Journal,
  type Part,
  type PartProgress,
  type Step,
} from '../steps.js';
import type { HeldRun, ReconciliationRunsRepository } from './reconciliation-runs.repository.js';

/** Stuck orders and top-ups have their own alerts. */
const ALERTED_ELSEWHERE: readonly string[] = ['order_is_not_stuck', 'topup_is_not_stuck'];
/** Log limit per worker and run; the table has all differences. */
const MAX_LOGGED = 100;

/** Another worker has taken over the run, because the lease had lapsed here. */
export class RunTakenOver extends Error {
  constructor() {
    super('another worker has taken over the reconciliation');
    this.name = 'RunTakenOver';
  }
}

export interface RunJournalParts {
  readonly runs: ReconciliationRunsRepository;
  readonly alerts: Alerts;
  readonly transactions: Transactions;
  readonly logger: Logger;
}

/**
 * Stores a run in the database. A step's differences, its alerts and the cursor are one transaction, so a step that
 * another worker repeats is stored once.
 */
export class RunJournal implements Journal {
  private readonly progress: Map<string, PartProgress>;
  private readonly checked: Record<string, number> = {};
  private logged = 0;

  constructor(
    private readonly run: HeldRun,
    progress: ReadonlyMap<string, PartProgress>,
    private readonly parts: RunJournalParts,
  ) {
    this.progress = new Map(progress);
  }

  progressOf(part: Part): PartProgress {
    const progress = this.progress.get(part.name) ?? AT_THE_BEGINNING;
    if (part.counts) this.checked[part.counts] = progress.rowsRead;
    return progress;
  }

  /** @throws RunTakenOver; a database error */
  async record(part: Part, step: Step): Promise<void> {
    const progress = advance(this.progressOf(part), step);
    const { differences, unanswered } = step;
    await this.parts.transactions.run(async (tx) => {
      const kept = { part: part.name, progress, differences, unanswered: unanswered.length };
      if (!(await this.parts.runs.record(tx, this.run, kept))) throw new RunTakenOver();
      for (const difference of differences) await this.alert(tx, difference);
    });
    this.progress.set(part.name, progress);
    for (const difference of differences) this.log(difference);
  }

  /** Ends the run. @throws RunTakenOver; a database error */
  async complete(): Promise<void> {
    const { runs, transactions, logger } = this.parts;
    const totals = await transactions.run((tx) => runs.complete(tx, this.run, this.checked));
    if (!totals) throw new RunTakenOver();
    const durationMs = Date.now() - this.run.startedAt.getTime();
    logger.info({ event: 'reconciliation.done', checked: this.checked, ...totals, durationMs });
  }

  private async alert(tx: Tx, difference: Difference): Promise<void> {
    const { check, subject, what, expected, found, advice } = difference;
    const { order, topup, partner } = subject;
    const subjectId = order ?? topup;
    if (subjectId === undefined || ALERTED_ELSEWHERE.includes(check)) return;
    await this.parts.alerts.raise(tx, {
      type: order === undefined ? 'topup.needs_review' : 'order.needs_review',
      partnerId: partner ?? null,
      subjectId,
      details: { reconciliation: check, what, expected, found, advice },
      // The same difference is found every day until it is resolved.
      onceKey: `reconciliation:${check}`,
    });
  }

  private log({ check, severity, subject, expected, found }: Difference): void {
    if (this.logged++ >= MAX_LOGGED) return;
    this.parts.logger[severity === 'error' ? 'error' : 'warn']({
      event: 'reconciliation.difference',
      ...{ check, subject, expected, found },
    });
  }
}
