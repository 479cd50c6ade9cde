import type { DataSource, EntityManager } from 'typeorm';

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

/** Sets them until the end of the transaction; does nothing where the sessions have their own. */
export async function applyTransactionLimits(manager: EntityManager): Promise<void> {
  const each = limits.get(manager.dataSource);
  if (!each) return;
  await manager.query(
    `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
            set_config('idle_in_transaction_session_timeout', '30000', true)`,
    [String(each.statementTimeoutMs), String(each.lockTimeoutMs)],
  );
}
