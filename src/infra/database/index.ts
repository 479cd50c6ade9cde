/**
 * PostgreSQL for every feature: the DataSource of the process and the small edge pool, transactions passed by hand (`Tx`),
 * hand-written SQL (`sql`), keyset pages, the database's clock. Owns no table. Features' repositories call it; a use case
 * opens a transaction with `Transactions.run` and hands `Tx` on; `afterCommit` holds what must not precede the commit.
 */
export {
  bigintColumn,
  databaseNow,
  sql,
  type SqlParameter,
  toSafeInteger,
  toSafeIntegerOrNull,
} from './sql.js';
export {
  isLockTimeout,
  isTransientConflict,
  mayBeOfOneRow,
  sqlState,
  violatedUniqueConstraint,
} from './database-errors.js';
export {
  createDataSource,
  DatabaseModule,
  DIRECT_DATABASE,
  EDGE_POOL,
  openDataSource,
  poolOf,
  surviveLostConnections,
} from './database.module.js';
export {
  type DayStep,
  type DayWindow,
  dayWindows,
  laterDayWindows,
  readByDay,
  type RowCursor,
  type WindowRows,
} from './day-windows.js';
export { openEdgePool } from './edge-pool.js';
export { StatementFailures, watchPool } from './database-metrics.js';
export { readAgeSeconds, readWithin } from './short-read.js';
export { KeysetPages, type ListOptions } from './keyset-page.js';
export { Transactions, withSavepoint, type Tx } from './transactions.js';
