import type { DataSource, QueryRunner } from 'typeorm';
import { type DatabaseClientSettings, settingsOfTransaction } from './database-client.js';
import { prepared, type PreparedStatement } from './sql.js';

/** Arguments of `send`: a statement and its parameters. */
type Prelude = readonly [statement: PreparedStatement, parameters: readonly string[]];

const preludes = new WeakMap<DataSource, Prelude>();

/**
 * For a pooler in transaction mode, which gives each transaction another session: makes every transaction on this
 * DataSource apply its own settings, both those of `Transactions.run` and TypeORM's.
 */
export function setInTransactions(dataSource: DataSource, settings: DatabaseClientSettings): void {
  const pairs = settingsOfTransaction(settings);
  const calls = pairs.map(([name], index) => `set_config('${name}', $${index + 1}, true)`);
  const prelude: Prelude = [prepared(`SELECT ${calls.join(', ')}`), pairs.map(([, value]) => value)];
  preludes.set(dataSource, prelude);
  const createRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => preceded(createRunner(mode), prelude);
}

function preceded(runner: QueryRunner, [{ text }, parameters]: Prelude): QueryRunner {
  const start = runner.startTransaction.bind(runner);
  runner.startTransaction = async (isolation) => {
    const isNested = runner.isTransactionActive;
    await start(isolation);
    if (!isNested) await runner.query(text, [...parameters]);
  };
  return runner;
}

/** First statement of a transaction; null when sessions have their own settings. */
export function preludeOf(dataSource: DataSource): Prelude | null {
  return preludes.get(dataSource) ?? null;
}
