export { databaseNow } from './sql.js';
export { isDataFault, isLockTimeout, sqlState, violatedUniqueConstraint } from './database-errors.js';
export { DatabaseModule, EDGE_POOL } from './database.module.js';
export { createDataSource, openDataSource, surviveLostConnections } from './data-source.js';
export { KeysetPages, type ListOptions } from './keyset-page.js';
export { bigintColumn } from './sql.js';
export { sql, toSafeInteger, toSafeIntegerOrNull, type SqlParameter } from './sql.js';
export { Transactions, withSavepoint, type Tx } from './transactions.js';
