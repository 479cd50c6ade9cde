import { Module } from '@nestjs/common';
import { Clock, SystemClock } from '../common/clock.js';
import { EventsModule } from '../events/index.js';
import { DeliveryFanOut } from './delivery-fan-out.js';
import { TargetPolicy } from './target-policy.js';
import { DeliveryNotifierModule } from './delivery-jobs.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import { WebhookReplaysRepository } from './webhook-replays.repository.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** What every role needs: whoever records an event also owes its deliveries. */
@Module({
  imports: [EventsModule, DeliveryNotifierModule],
  providers: [
    DeliveryFanOut,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    WebhookReplaysRepository,
    { provide: Clock, useClass: SystemClock },
  ],
  exports: [
    DeliveryNotifierModule,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    WebhookReplaysRepository,
    Clock,
  ],
})
export class WebhooksCoreModule {}
