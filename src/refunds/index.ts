import { RefundRequestEntity } from './refund-request.entity.js';

/**
 * Refund requests: a partner asks to refund an eSIM, and the portal team decides. Owns the table `refund_requests`,
 * which `orders/` reads to refund nothing twice.
 * Callers: partners (`/v1/refund-requests`), the portal, the portal team on the admin port.
 * Flow: RequestRefund -> RefundFacts (order, eSIM and money beside each request) -> DecideRefund (order, request, audit
 * entry, event and wallet in one transaction).
 */
export { RefundRequestResponse, toRefundRequestResponse } from './api/refund-request.dto.js';
export { RefundRequestsRepository } from './refund-requests.repository.js';
export {
  RefundsAdminModule,
  RefundsApiModule,
  RefundsModule,
  RefundsPortalModule,
} from './refunds.module.js';
export { RefundRequestEntity };

export const REFUND_ENTITIES = [RefundRequestEntity];
