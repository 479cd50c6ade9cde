/**
 * PostgreSQL for every feature: the DataSource of the process and the small edge pool, transactions passed by hand (`Tx`),
 * hand-written SQL (`sql`), keyset pages, the database's clock. Owns no table. Features' repositories call it; a use case
 * opens a transaction with `Transactions.run` and hands `Tx` on; `afterCommit` holds what must not precede the commit.
 */
export { databaseNow } from './sql.js';
export {
  isLockTimeout,
  isTransientConflict,
  mayBeOfOneRow,
  sqlState,
  violatedUniqueConstraint,
} from './database-errors.js';
export { DatabaseModule, EDGE_POOL } from './database.module.js';
export { createDataSource, openDataSource, surviveLostConnections } from './data-source.js';
export { KeysetPages, type ListOptions } from './keyset-page.js';
export { bigintColumn } from './sql.js';
export { sql, toSafeInteger, toSafeIntegerOrNull, type SqlParameter } from './sql.js';
export { Transactions, withSavepoint, type Tx } from './transactions.js';
