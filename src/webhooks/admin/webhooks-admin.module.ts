import { Module } from '@nestjs/common';
import { AuditModule } from '../../audit/index.js';
import { PartnersModule } from '../../partners/index.js';
import { ChangeEndpoint } from '../change-endpoint.js';
import { FindEndpoint } from '../find-endpoint.js';
import { RegisterEndpoint } from '../register-endpoint.js';
import { ReplayEvents } from '../replay-events.js';
import { RotateSecret } from '../rotate-secret.js';
import { SendOnRequest } from '../send-on-request.js';
import { SwitchEndpoint } from '../switch-endpoint.js';
import { TargetCheck } from '../target-check.js';
import { WebhooksCoreModule } from '../webhooks-core.module.js';
import { WebhookDeliveriesController } from './webhook-deliveries.controller.js';
import { WebhookEndpointActionsController } from './webhook-endpoint-actions.controller.js';
import { WebhookReplaysController } from './webhook-replays.controller.js';
import { WebhookEndpointsController } from './webhook-endpoints.controller.js';

/** Administration of endpoints and the delivery log, on the admin port. */
@Module({
  imports: [WebhooksCoreModule, PartnersModule, AuditModule],
  providers: [
    FindEndpoint,
    TargetCheck,
    RegisterEndpoint,
    ChangeEndpoint,
    SwitchEndpoint,
    RotateSecret,
    SendOnRequest,
    ReplayEvents,
  ],
  controllers: [
    WebhookEndpointsController,
    WebhookEndpointActionsController,
    WebhookDeliveriesController,
    WebhookReplaysController,
  ],
})
export class WebhooksAdminModule {}
