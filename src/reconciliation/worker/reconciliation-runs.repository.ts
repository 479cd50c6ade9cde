import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type Tx } from '../../infra/database/index.js';
import type { Difference } from '../difference.js';
import type { ReconciliationReport } from '../reconcile.js';
import { countUnanswered } from '../render-report.js';

/** Longer than any run; a worker that died is taken over after it. */
const LEASE = "interval '6 hours'";
const KEPT_RUNS = 30;

/** SQL of `reconciliation_runs` and `reconciliation_differences`. */
@Injectable()
export class ReconciliationRunsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Begins a run unless one is under way, or the last completed one is younger than `intervalMs`: then null. */
  async begin(tx: Tx, intervalMs: number): Promise<string | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('reconciliation_runs'))`);
    await sql(
      tx.manager,
      `UPDATE reconciliation_runs SET status = 'failed', ended_at = now(), lease_until = NULL
       WHERE status = 'running' AND lease_until <= now()`,
    );
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `INSERT INTO reconciliation_runs (status, lease_until)
       SELECT 'running', now() + ${LEASE}
       WHERE NOT EXISTS (SELECT 1 FROM reconciliation_runs
                         WHERE status = 'running'
                            OR (status = 'completed' AND started_at > now() - $1 * interval '1 millisecond'))
       RETURNING id`,
      [intervalMs],
    );
    return rows[0]?.id ?? null;
  }

  /** Keeps what the run found, and forgets the oldest runs. */
  async complete(tx: Tx, id: string, report: ReconciliationReport): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE reconciliation_runs SET status = 'completed', ended_at = now(), lease_until = NULL, checked = $2::jsonb,
         differences = $3, unanswered = $4
       WHERE id = $1 AND status = 'running'`,
      [id, JSON.stringify(report.checked), report.differences.length, countUnanswered(report)],
    );
    await this.insertDifferences(tx, id, report.differences);
    await sql(
      tx.manager,
      `DELETE FROM reconciliation_runs
       WHERE id < (SELECT min(id) FROM (SELECT id FROM reconciliation_runs ORDER BY id DESC LIMIT ${KEPT_RUNS}) AS kept)`,
    );
  }

  /** Ends a run that could not be finished: the next look begins another. */
  async fail(tx: Tx, id: string): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE reconciliation_runs SET status = 'failed', ended_at = now(), lease_until = NULL
       WHERE id = $1 AND status = 'running'`,
      [id],
    );
  }

  /** Differences of the last completed run; null when there is none. */
  async countLastDifferences(): Promise<number | null> {
    const { rows } = await sql<{ differences: number }>(
      this.manager,
      `SELECT differences FROM reconciliation_runs WHERE status = 'completed' ORDER BY started_at DESC LIMIT 1`,
    );
    return rows[0]?.differences ?? null;
  }

  private async insertDifferences(tx: Tx, id: string, differences: readonly Difference[]): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO reconciliation_differences (run_id, seq, check_name, severity, subject, expected, found)
       SELECT $1, d.seq, d.check_name, d.severity, d.subject::jsonb, d.expected, d.found
       FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
            WITH ORDINALITY AS d (check_name, severity, subject, expected, found, seq)`,
      [
        id,
        differences.map(({ check }) => check),
        differences.map(({ severity }) => severity),
        differences.map(({ subject }) => JSON.stringify(subject)),
        differences.map(({ expected }) => expected),
        differences.map(({ found }) => found),
      ],
    );
  }
}
