import { WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { WebhookReplayEntity } from './webhook-replay.entity.js';

export { WebhooksAdminModule } from './admin/webhooks-admin.module.js';
export {
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
export {
  type SignatureInput,
  signWebhook,
  type VerificationInput,
  verifyWebhookSignature,
} from './signature.js';
export { WebhooksCoreModule } from './webhooks-core.module.js';
export { WebhooksWorkerModule } from './worker/webhooks-worker.module.js';

/** For the DataSource: entities are listed by hand. */
export const WEBHOOK_ENTITIES = [WebhookEndpointEntity, WebhookDeliveryEntity, WebhookReplayEntity];
