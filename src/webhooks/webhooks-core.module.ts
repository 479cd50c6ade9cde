import { Module } from '@nestjs/common';
import { Clock, SystemClock } from '../common/clock.js';
import { EventsModule } from '../events/index.js';
import { DeliveryFanOut } from './delivery-fan-out.js';
import { TargetPolicy } from './target-policy.js';
import { WEBHOOK_WAKE_UPS } from './wake-ups.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import { WebhookReplaysRepository } from './webhook-replays.repository.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** What every role needs: whoever records an event also owes its deliveries. */
@Module({
  imports: [EventsModule, WEBHOOK_WAKE_UPS],
  providers: [
    DeliveryFanOut,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    WebhookReplaysRepository,
    { provide: Clock, useClass: SystemClock },
  ],
  exports: [
    WEBHOOK_WAKE_UPS,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    WebhookReplaysRepository,
    Clock,
  ],
})
export class WebhooksCoreModule {}
