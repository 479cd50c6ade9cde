/**
 * Support's view of orders and top-ups, and its decisions on those that need review (D19, D22). Owns no table: reads
 * `orders`, `topups` and `provider_placements`, and writes through the use cases of orders and top-ups.
 * Callers: the portal team on the admin port (lists, `needs-review`, `upstream`, `reconcile`); the worker's review
 * sweep.
 * Flow: needs-review -> InspectProvider... (queries outside a transaction) -> resolution-rules -> Resolve... (lease
 * with a higher fence, then CompleteOrder, CompleteCancellation or CompleteTopup).
 */
export { SupportAdminModule, SupportWorkerModule } from './support.module.js';
