import type { DataSource } from 'typeorm';
import { prepared, type PreparedStatement, type SqlParameter } from './sql.js';

/** What a session would say once; a pooler in transaction mode hands each transaction another one. Milliseconds. */
export interface TransactionLimits {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
}

const limits = new WeakMap<DataSource, TransactionLimits>();

/** From now on every transaction of `Transactions.run` on this DataSource sets its own limits. */
export function limitTransactions(dataSource: DataSource, each: TransactionLimits): void {
  limits.set(dataSource, each);
}

const SET_LIMITS = prepared(
  `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
          set_config('idle_in_transaction_session_timeout', '30000', true)`,
);

/** The statement that sets them until the end of a transaction; null where the sessions have their own. */
export function limitsOf(dataSource: DataSource): [PreparedStatement, SqlParameter[]] | null {
  const each = limits.get(dataSource);
  return each ? [SET_LIMITS, [String(each.statementTimeoutMs), String(each.lockTimeoutMs)]] : null;
}
