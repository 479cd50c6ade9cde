import type { QueryRunner } from 'typeorm';

export interface NewIndex {
  readonly name: string;
  /** What stands behind ON: table, columns and condition. */
  readonly on: string;
}

/** Builds indexes while everybody reads and writes; may be repeated. Only for a migration without a transaction. */
export async function buildIndexes(runner: QueryRunner, indexes: readonly NewIndex[]): Promise<void> {
  // It waits for transactions that are under way, and holds nobody up meanwhile.
  await runner.query('SET lock_timeout = 0');
  for (const { name, on } of indexes) {
    // One that a broken attempt left behind is invalid, and would count as there.
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
  }
  await runner.query('RESET lock_timeout');
}

/** Undoes `buildIndexes`. */
export async function dropIndexes(runner: QueryRunner, indexes: readonly NewIndex[]): Promise<void> {
  for (const { name } of indexes) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
}
