import type { QueryRunner } from 'typeorm';
import { type DatabaseClient, sql, type Tx } from './database/index.js';

/** An arbitrary number; together with the table's name it identifies this lock among the database's advisory locks. */
const LOCK_CLASS = 7_302_115;

/** Locks until the end of the transaction. Of two concurrent workers, the second finds the work done. */
export async function lockUntilCommit(tx: Tx, table: string): Promise<void> {
  // A frozen process must not prevent all partition changes, so the server ends its session. A process that waits for
  // CPU must keep its session, or a start on a busy machine would fail.
  await sql(tx.manager, `SET LOCAL idle_in_transaction_session_timeout = '10s'`);
  await sql(tx.manager, 'SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, table]);
}

/** False when another process holds the lock. */
export async function lockSession(runner: QueryRunner, table: string): Promise<boolean> {
  const { rows } = await sql<{ locked: boolean }>(
    runner.manager,
    'SELECT pg_try_advisory_lock($1, hashtext($2)) AS locked',
    [LOCK_CLASS, table],
  );
  return rows[0]!.locked;
}

/**
 * Releases the session without its lock and its timeouts, or closes it if that fails, because its next user from the
 * pool must not hold the lock. Unlocking a free lock only causes a server warning.
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
