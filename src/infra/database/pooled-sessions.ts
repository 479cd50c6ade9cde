import type { DataSource, QueryRunner } from 'typeorm';
import { prepared, type PreparedStatement, type SqlParameter } from './sql.js';

/** What a session would say once; a pooler in transaction mode hands each transaction another one. Milliseconds. */
export interface TransactionLimits {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
}

const limits = new WeakMap<DataSource, TransactionLimits>();

/** From now on every transaction on this DataSource sets its own limits: `Transactions.run` does, and TypeORM's are made to. */
export function limitTransactions(dataSource: DataSource, each: TransactionLimits): void {
  limits.set(dataSource, each);
  const createRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (mode) => limiting(createRunner(mode), each);
}

function limiting(runner: QueryRunner, each: TransactionLimits): QueryRunner {
  const start = runner.startTransaction.bind(runner);
  runner.startTransaction = async (isolation) => {
    const isNested = runner.isTransactionActive;
    await start(isolation);
    if (!isNested) await runner.query(SET_LIMITS.text, valuesOf(each));
  };
  return runner;
}

const SET_LIMITS = prepared(
  `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
          set_config('idle_in_transaction_session_timeout', '30000', true)`,
);

/** The statement that sets them until the end of a transaction; null where the sessions have their own. */
export function limitsOf(dataSource: DataSource): [PreparedStatement, SqlParameter[]] | null {
  const each = limits.get(dataSource);
  return each ? [SET_LIMITS, valuesOf(each)] : null;
}

function valuesOf({ statementTimeoutMs, lockTimeoutMs }: TransactionLimits): string[] {
  return [String(statementTimeoutMs), String(lockTimeoutMs)];
}
