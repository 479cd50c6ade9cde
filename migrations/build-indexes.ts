import type { QueryRunner } from 'typeorm';

export interface NewIndex {
  readonly name: string;
  /** The text after ON: table, columns and condition. */
  readonly on: string;
}

/** Builds indexes without blocking reads or writes; repeatable. Only for a migration without a transaction. */
export async function buildIndexes(runner: QueryRunner, indexes: readonly NewIndex[]): Promise<void> {
  // CREATE INDEX CONCURRENTLY waits for running transactions without blocking others.
  await runner.query('SET lock_timeout = 0');
  for (const { name, on } of indexes) {
    // An index left by an interrupted attempt is invalid, but would count as existing.
    await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
  }
  await runner.query('RESET lock_timeout');
}

/** Drops the indexes of `buildIndexes`. */
export async function dropIndexes(runner: QueryRunner, indexes: readonly NewIndex[]): Promise<void> {
  for (const { name } of indexes) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
}
