/**
 * PostgreSQL for every feature: the process's DataSource and the small edge pool, explicit transactions (`Tx`),
 * hand-written SQL (`sql`, `prepared`), keyset pages, the database's clock. Owns no table. Features' repositories call
 * it. A use case opens a transaction with `Transactions.run` and passes `Tx` on; `afterCommit` holds actions that must
 * not precede the commit.
 */
export {
  bigintColumn,
  databaseNow,
  NOW,
  prepared,
  type PreparedStatement,
  sql,
  type SqlParameter,
  toSafeInteger,
  toSafeIntegerOrNull,
  type Tx,
} from './sql.js';
export {
  isLockTimeout,
  isStatementTimeout,
  isTransientConflict,
  isUndefinedTable,
  mayBeOfOneRow,
  sqlState,
  violatedUniqueConstraint,
} from './database-errors.js';
export { createDataSource, DatabaseModule, DIRECT_DATABASE, EDGE_POOL, poolOf } from './database.module.js';
export { clientConfig, createDatabaseClient, DatabaseClient } from './database-client.js';
export { assertSession, assertSessionsOf } from './session-check.js';
export { ServerContact } from './server-contact.js';
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
export { send } from './open-transaction.js';
export { columnsOf, type SqlColumn } from './entity-columns.js';
export { rowToEntity, selectList } from './row-to-entity.js';
export {
  COMMIT_WITHOUT_DISK,
  commitSandboxWithoutDisk,
  limitLockWait,
  Transactions,
  withSavepoint,
} from './transactions.js';
export { WriteProbe } from './write-probe.js';
export { updateVersioned } from './versioned-update.js';
export { modeIn } from './mode-in.js';
