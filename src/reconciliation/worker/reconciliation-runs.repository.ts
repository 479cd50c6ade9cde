import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, toSafeInteger, type Tx } from '../../infra/database/index.js';
import type { Difference } from '../difference.js';
import type { PartProgress } from '../steps.js';

const KEPT_RUNS = 30;
/** A run without progress in this many consecutive attempts is abandoned, and the next one starts over. */
const MAX_ATTEMPTS = 5;

/** A run held by this worker, until another one takes it over with a higher fence. */
export interface HeldRun {
  readonly id: string;
  readonly fence: string;
  readonly startedAt: Date;
}

/** A step's contribution to its run. */
export interface RunStep {
  readonly part: string;
  readonly progress: PartProgress;
  readonly differences: readonly Difference[];
  readonly unanswered: number;
}

interface RunRow {
  id: string;
  fence: string;
  started_at: Date;
}

interface CursorRow {
  part: string;
  cursor: string | null;
  rows_read: string;
  differences: number;
}

/** SQL of `reconciliation_runs`, `reconciliation_cursors` and `reconciliation_differences`. */
@Injectable()
export class ReconciliationRunsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Takes over the run of a dead worker or starts a new one. Null when another worker holds one, or the last completed
   * run is younger than `intervalMs`.
   */
  async claim(tx: Tx, intervalMs: number, leaseMs: number): Promise<HeldRun | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('reconciliation_runs'))`);
    await sql(
      tx.manager,
      `UPDATE reconciliation_runs SET status = 'failed', ended_at = now(), lease_until = NULL
       WHERE status = 'running' AND lease_until <= now() AND attempts >= ${MAX_ATTEMPTS}`,
    );
    return (await this.takeOver(tx, leaseMs)) ?? (await this.begin(tx, intervalMs, leaseMs));
  }

  async startOfLastCompleted(): Promise<Date | null> {
    const { rows } = await sql<{ started_at: Date | null }>(
      this.manager,
      `SELECT max(started_at) AS started_at FROM reconciliation_runs WHERE status = 'completed'`,
    );
    return rows[0]?.started_at ?? null;
  }

  /** Progress of a run's parts. */
  async listProgress(id: string): Promise<ReadonlyMap<string, PartProgress>> {
    const { rows } = await sql<CursorRow>(
      this.manager,
      'SELECT part, cursor, rows_read, differences FROM reconciliation_cursors WHERE run_id = $1',
      [id],
    );
    return new Map(
      rows.map(({ part, cursor, rows_read: rowsRead, differences }) => [
        part,
        { cursor, rowsRead: toSafeInteger(rowsRead), differences },
      ]),
    );
  }

  /** Renews the lease. Returns false if another worker holds the run. */
  async renew({ id, fence }: HeldRun, leaseMs: number): Promise<boolean> {
    const { affected } = await sql(
      this.manager,
      `UPDATE reconciliation_runs SET lease_until = clock_timestamp() + $3 * interval '1 millisecond'
       WHERE id = $1 AND fence = $2 AND status = 'running'`,
      [id, fence, leaseMs],
    );
    return affected === 1;
  }

  /** Stores a step's findings and cursor. False when another worker holds the run; then nothing is stored. */
  async record(tx: Tx, { id, fence }: HeldRun, step: RunStep): Promise<boolean> {
    const { part, progress, differences, unanswered } = step;
    const { rows } = await sql<{ before: number }>(
      tx.manager,
      `UPDATE reconciliation_runs
       SET differences = differences + $3::int, unanswered = unanswered + $4::int, attempts = 0
       WHERE id = $1 AND fence = $2 AND status = 'running'
       RETURNING differences - $3::int AS before`,
      [id, fence, differences.length, unanswered],
    );
    if (!rows[0]) return false;
    await sql(
      tx.manager,
      `INSERT INTO reconciliation_cursors (run_id, part, cursor, rows_read, differences) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (run_id, part) DO UPDATE
       SET cursor = excluded.cursor, rows_read = excluded.rows_read, differences = excluded.differences`,
      [id, part, progress.cursor, progress.rowsRead, progress.differences],
    );
    await this.insertDifferences(tx, id, rows[0].before, differences);
    return true;
  }

  /** Ends the run and deletes the oldest ones. Returns null if another worker holds the run. */
  async complete(
    tx: Tx,
    { id, fence }: HeldRun,
    checked: Readonly<Record<string, number>>,
  ): Promise<{ readonly differences: number; readonly unanswered: number } | null> {
    const { rows } = await sql<{ differences: number; unanswered: number }>(
      tx.manager,
      `UPDATE reconciliation_runs SET status = 'completed', ended_at = now(), lease_until = NULL, checked = $3::jsonb
       WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING differences, unanswered`,
      [id, fence, JSON.stringify(checked)],
    );
    await sql(
      tx.manager,
      `DELETE FROM reconciliation_runs
       WHERE id < (SELECT min(id) FROM (SELECT id FROM reconciliation_runs ORDER BY id DESC LIMIT ${KEPT_RUNS}) AS kept)`,
    );
    return rows[0] ?? null;
  }

  /** Releases the run for any worker, including this one. */
  async release({ id, fence }: HeldRun): Promise<void> {
    await sql(
      this.manager,
      `UPDATE reconciliation_runs SET lease_until = clock_timestamp()
       WHERE id = $1 AND fence = $2 AND status = 'running'`,
      [id, fence],
    );
  }

  /** Number of differences of the last completed run; null when there is none. */
  async countLastDifferences(): Promise<number | null> {
    const { rows } = await sql<{ differences: number }>(
      this.manager,
      `SELECT differences FROM reconciliation_runs WHERE status = 'completed' ORDER BY started_at DESC LIMIT 1`,
    );
    return rows[0]?.differences ?? null;
  }

  /** The same by check, for checks with differences. */
  async countLastDifferencesByCheck(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await sql<{ check_name: string; found: number }>(
      this.manager,
      `SELECT check_name, count(*)::int AS found FROM reconciliation_differences
       WHERE run_id = (SELECT id FROM reconciliation_runs WHERE status = 'completed' ORDER BY started_at DESC LIMIT 1)
       GROUP BY check_name`,
    );
    return new Map(rows.map((row) => [row.check_name, row.found]));
  }

  /** Seconds since the last completed run ended; null when there is none. */
  async ageOfLastCompletedSeconds(): Promise<number | null> {
    const { rows } = await sql<{ seconds: number }>(
      this.manager,
      `SELECT extract(epoch FROM now() - ended_at)::float8 AS seconds FROM reconciliation_runs
       WHERE status = 'completed' ORDER BY started_at DESC LIMIT 1`,
    );
    return rows[0]?.seconds ?? null;
  }

  private async takeOver(tx: Tx, leaseMs: number): Promise<HeldRun | null> {
    const { rows } = await sql<RunRow>(
      tx.manager,
      `UPDATE reconciliation_runs
       SET fence = fence + 1, attempts = attempts + 1, lease_until = clock_timestamp() + $1 * interval '1 millisecond'
       WHERE id = (SELECT min(id) FROM reconciliation_runs WHERE status = 'running' AND lease_until <= now())
       RETURNING id, fence, started_at`,
      [leaseMs],
    );
    return rows[0] ? toHeldRun(rows[0]) : null;
  }

  private async begin(tx: Tx, intervalMs: number, leaseMs: number): Promise<HeldRun | null> {
    const { rows } = await sql<RunRow>(
      tx.manager,
      `INSERT INTO reconciliation_runs (status, fence, attempts, lease_until)
       SELECT 'running', 1, 1, clock_timestamp() + $2 * interval '1 millisecond'
       WHERE NOT EXISTS (SELECT 1 FROM reconciliation_runs
                         WHERE status = 'running'
                            OR (status = 'completed' AND started_at > now() - $1 * interval '1 millisecond'))
       RETURNING id, fence, started_at`,
      [intervalMs, leaseMs],
    );
    return rows[0] ? toHeldRun(rows[0]) : null;
  }

  private async insertDifferences(
    tx: Tx,
    id: string,
    before: number,
    differences: readonly Difference[],
  ): Promise<void> {
    if (differences.length === 0) return;
    await sql(
      tx.manager,
      `INSERT INTO reconciliation_differences (run_id, seq, check_name, severity, subject, expected, found)
       SELECT $1, $2::int + d.seq, d.check_name, d.severity, d.subject::jsonb, d.expected, d.found
       FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
            WITH ORDINALITY AS d (check_name, severity, subject, expected, found, seq)`,
      [
        id,
        before,
        differences.map(({ check }) => check),
        differences.map(({ severity }) => severity),
        differences.map(({ subject }) => JSON.stringify(subject)),
        differences.map(({ expected }) => expected),
        differences.map(({ found }) => found),
      ],
    );
  }
}

function toHeldRun({ id, fence, started_at: startedAt }: RunRow): HeldRun {
  return { id, fence, startedAt };
}
