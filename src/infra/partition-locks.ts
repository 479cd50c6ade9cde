import type { QueryRunner } from 'typeorm';
import { type DatabaseClient, sql, type Tx } from './database/index.js';

/** Any number; with the table's name it names this lock among the advisory locks of the database. */
const LOCK_CLASS = 7_302_115;

/** Until the end of the transaction. Two workers at once: the second finds the work done. */
export async function lockUntilCommit(tx: Tx, table: string): Promise<void> {
  // A process that freezes in here must not keep everybody from making partitions: the server ends its session. One that
  // waits for a core must not lose it, or a start on a busy machine would fail.
  await sql(tx.manager, `SET LOCAL idle_in_transaction_session_timeout = '10s'`);
  await sql(tx.manager, 'SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, table]);
}

/** False when another process is at it. */
export async function lockSession(runner: QueryRunner, table: string): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>(
    runner.manager,
    'SELECT pg_try_advisory_lock($1, hashtext($2)) AS locked',
    [LOCK_CLASS, table],
  );
  return rows[0]!.locked;
}

/**
 * Gives the session back without its lock and its time limits, or closes it when that fails: the next one who gets it from
 * the pool must not hold the lock. Unlocking what is not locked only makes a warning of the server.
 */
export async function releaseSession(runner: QueryRunner, table: string): Promise<void> {
  const session = (await runner.connect()) as DatabaseClient;
  try {
    await sql(runner.manager, 'RESET lock_timeout');
    await sql(runner.manager, 'RESET statement_timeout');
    await sql(runner.manager, 'RESET idle_session_timeout');
    await sql(runner.manager, 'SELECT pg_advisory_unlock($1, hashtext($2))', [LOCK_CLASS, table]);
    session.expectAnswersWithin(null);
  } catch (error) {
    session.abandon(error instanceof Error ? error : new Error(String(error)));
    throw error;
  } finally {
    await runner.release();
  }
}
