/**
 * Orders: a partner buys eSIMs of one package, and may cancel them while they are unused (spec section 5, D19, D22).
 * Owns the table `orders`; reads `topups` to refuse a cancellation, and `refund_requests` to refund nothing twice.
 * Callers: partners (`/v1/orders`), the worker, `support/` (inspects and resolves), `esim-sync/` (makes orders due).
 * Flow: PlaceOrder (row and hold) -> OrderWorker (claim) -> FulfillOrder (FindOrPlace at the provider, then
 * PurchaseEnds, many in one transaction) -> CompleteOrder (eSIMs, money, event). CancelOrder -> OrderWorker ->
 * SettleCancellation -> CompleteCancellation (refund). ReplaceEsim cancels one eSIM in the same way, and
 * StartReplacement then makes the new order due. `purchases/` has the claim and everything else that orders share
 * with top-ups.
 */
export { OrdersQueryDto, toOrderFilters } from './api/order-requests.dto.js';
export { OrderEsimResponse, OrderResponse, toOrderResponse } from './api/order.response.js';
export { type CancelOutcome, CompleteCancellation } from './cancel-order.js';
export { CompleteOrder } from './complete-order.js';
export {
  canceledWith,
  type EsimRefund,
  ORDER_STATUSES,
  OrderEntity,
  type OrderStatus,
  type OrderWithEsims,
  priceOf,
  refundableOf,
  toProviderCancelRequest,
  toProviderOrderRequest,
} from './order.js';
export { ORDER_JOBS, OrderJobsRepository } from './order-jobs.repository.js';
export { OrdersApiModule, OrdersModule, OrdersPortalModule, OrdersWorkerModule } from './orders.module.js';
export { OrdersRepository, ReadOrders } from './orders.repository.js';
export { type OrderAge, type PastOrders, PastOrdersRepository } from './past-orders.repository.js';
