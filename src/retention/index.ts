/**
 * Deletes data past its retention that spans tables of several features (D44). Owns no table: every statement belongs
 * to its feature. Daily partitions are handled by `src/apps/partitions.ts`, and webhooks purge their own rows.
 * Run by the worker on a schedule, in small steps; no other feature calls it.
 */
export { RetentionWorkerModule } from './retention.module.js';
export { PurgeSandboxOrders } from './worker/purge-sandbox-orders.js';
