/**
 * Deletes what is past its retention and lies in tables of several features (D44). Owns no table: every statement is its
 * feature's. What is partitioned by day goes by `src/apps/partitions.ts`, and webhooks purge their own rows.
 * Called by nobody: the worker runs it at intervals, in small steps.
 */
export { RetentionWorkerModule } from './retention.module.js';
export { PurgeSandboxOrders } from './worker/purge-sandbox-orders.js';
