/**
 * The common part of orders and top-ups: a row that is accepted, claimed by one worker under lease and fence, found or
 * placed at its provider, and ended once (D19, D22, D40). Owns no table: `orders/` and `topups/` supply theirs and
 * define the differences, which are the sold item, the effect of its result, and the cancellation of an order.
 * Flow: PurchasesRepository.insert -> PurchaseJobsRepository.claim -> PurchaseWorker -> FindOrPlace -> PurchaseEnds ->
 * PurchaseJobsRepository.end; or `postpone`. Support acquires the lease in place of a worker.
 */
export { FindOrPlace } from './find-or-place.js';
export {
  Purchase,
  returnedSpending,
  toProviderRequest,
  type PurchaseFilters,
  type PurchaseKind,
} from './purchase.js';
export { PurchaseEnds } from './purchase-ends.js';
export {
  type AcquiredLease,
  bornClaimed,
  type ChangedPurchase,
  type ClaimedPurchase,
  PurchaseJobsRepository,
  type PurchaseLease,
  type PurchaseVersion,
} from './purchase-jobs.repository.js';
export { PurchaseMetricsModule } from './purchase-metrics.js';
export { PurchaseWorker } from './purchase-worker.js';
export { type NewPurchase, type NewState, PurchasesRepository } from './purchases.repository.js';
