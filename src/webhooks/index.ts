/**
 * Webhooks: every recorded event is sent, signed, to the partner's endpoints of its mode (spec section 6).
 * Tables: webhook_endpoints, webhook_deliveries, webhook_attempts, webhook_backlog_jobs, webhook_endpoint_leases,
 * webhook_endpoint_stats.
 * Callers: `EventRecorder` through `DeliveryFanOut`, in the event's transaction; the portal team on the admin port.
 * Flow: DeliveryFanOut -> DeliveryWorker (claim) -> AttemptPerformer -> WebhookSender -> AttemptRecorder (outcome).
 * Retry, block, disable, slow start: `delivery-rules.ts` has the spec's table and every transition.
 */
import { BacklogJobEntity } from './backlog-job.entity.js';
import { WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import { WebhookEndpointEntity } from './webhook-endpoint.entity.js';

export {
  toDeliveryResponse,
  WebhookAttemptResponse,
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
} from './admin/webhook-delivery.response.js';
export {
  CreatedWebhookEndpointResponse,
  DeletedWebhookEndpointResponse,
  RotatedWebhookSecretResponse,
  WebhookEndpointResponse,
} from './admin/webhook-endpoint.response.js';
export { EndpointStatsRepository } from './endpoint-stats.repository.js';
export { type Cause, CAUSES } from './failure-causes.js';
export { type ShownEndpoint, ShowEndpoints } from './show-endpoints.js';
export { attemptDays, deliveryDays, openDeliveriesNeed } from './delivery-days.js';
export {
  type SignatureInput,
  signWebhook,
  type VerificationInput,
  verifyWebhookSignature,
} from './signature.js';
export { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
export { deliveryStatus, type WebhookDeliveryEntity } from './webhook-delivery.entity.js';
export { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';
export {
  WebhooksAdminModule,
  WebhooksCoreModule,
  WebhooksPortalModule,
  WebhooksWorkerModule,
} from './webhooks.module.js';

/** Entities for the DataSource, which lists them explicitly. */
export const WEBHOOK_ENTITIES = [WebhookEndpointEntity, WebhookDeliveryEntity, BacklogJobEntity];
