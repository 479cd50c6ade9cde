import { Module } from '@nestjs/common';
import { AlertsModule } from '../alerts/index.js';
import { AuditModule } from '../audit/index.js';
import { RateLimitStorageModule } from '../auth/index.js';
import { Clock, SystemClock } from '../common/clock.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { EventsModule } from '../events/index.js';
import { nameServerResolver, systemResolver } from '../infra/network/resolve-addresses.js';
import { PartnersModule } from '../partners/index.js';
import {
  EndpointDeliveriesController,
  PortalEndpointDeliveriesController,
} from './admin/endpoint-deliveries.controller.js';
import {
  AllEndpointsController,
  PortalDeliveriesController,
  WebhookDeliveriesController,
} from './admin/webhook-deliveries.controller.js';
import {
  PortalEndpointsController,
  WebhookEndpointsController,
} from './admin/webhook-endpoints.controller.js';
import { BacklogJobs } from './backlog-jobs.js';
import { BacklogJobsRepository } from './backlog-jobs.repository.js';
import { BacklogStepsRepository } from './backlog-steps.repository.js';
import { EndpointStatsRepository } from './endpoint-stats.repository.js';
import { DeliveryFanOut, DeliveryNotifierModule } from './delivery-fan-out.js';
import { Explain } from './explain.js';
import { FindExplanation } from './find-explanation.js';
import { PortalExplanationsController } from './portal/portal-explanations.controller.js';
import { SignatureDoctor } from './signature-doctor.js';
import { ManualSends } from './manual-sends.js';
import { OwnedWebhooks } from './owned-webhooks.js';
import { ReplayEvents } from './replay-events.js';
import { ShowEndpoints } from './show-endpoints.js';
import { SendOnRequest } from './send-on-request.js';
import { TargetPolicy } from './target-policy.js';
import { WebhookDeliveriesRepository } from './webhook-deliveries.repository.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';
import { AttemptRecorder } from './worker/attempt-recorder.js';
import { BacklogRepository } from './worker/backlog.repository.js';
import { BacklogRunner } from './worker/backlog-runner.js';
import { DeliveriesRepository } from './worker/deliveries.repository.js';
import { DeliveryTracesRepository } from './worker/delivery-traces.repository.js';
import { DeliveryWorker } from './worker/delivery-worker.js';
import { DiscardDeliveries } from './worker/discard-deliveries.js';
import { DiscardsRepository } from './worker/discards.repository.js';
import { EndedDeliveryCounts } from './worker/ended-delivery-counts.js';
import { EndedEndpointAlerts } from './worker/ended-endpoint-alerts.js';
import { EndpointLeases } from './worker/endpoint-leases.js';
import { OwnedDeliveries } from './worker/owned-deliveries.js';
import { WebhookMaintenance } from './worker/webhook-maintenance.js';
import { WebhookMetrics } from './worker/webhook-metrics.js';
import { WebhookSender } from './worker/webhook-sender.js';

/** Imported by every role, because recording an event also creates its deliveries. */
@Module({
  imports: [EventsModule, DeliveryNotifierModule, AuditModule],
  providers: [
    DeliveryFanOut,
    BacklogJobs,
    BacklogJobsRepository,
    BacklogStepsRepository,
    EndpointStatsRepository,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    { provide: Clock, useClass: SystemClock },
  ],
  exports: [
    DeliveryNotifierModule,
    DeliveryFanOut,
    BacklogJobs,
    BacklogJobsRepository,
    EndpointStatsRepository,
    TargetPolicy,
    WebhookDeliveriesRepository,
    WebhookEndpointsRepository,
    Clock,
  ],
})
export class WebhooksCoreModule {}

const USE_CASES = [
  WebhookEndpointsService,
  SendOnRequest,
  ReplayEvents,
  ShowEndpoints,
  Explain,
  FindExplanation,
  OwnedWebhooks,
  ManualSends,
];

/** Endpoints and the delivery log, on the portal's port. */
@Module({
  imports: [WebhooksCoreModule, PartnersModule, AuditModule, RateLimitStorageModule],
  providers: [...USE_CASES, SignatureDoctor],
  exports: [ShowEndpoints],
  controllers: [
    PortalEndpointsController,
    PortalEndpointDeliveriesController,
    PortalDeliveriesController,
    PortalExplanationsController,
  ],
})
export class WebhooksPortalModule {}

/** Administration of endpoints and the delivery log, on the admin port. */
@Module({
  imports: [WebhooksCoreModule, PartnersModule, AuditModule, RateLimitStorageModule],
  providers: USE_CASES,
  controllers: [
    WebhookEndpointsController,
    AllEndpointsController,
    EndpointDeliveriesController,
    WebhookDeliveriesController,
  ],
})
export class WebhooksAdminModule {}

/** Sends deliveries; only the worker role imports it. */
@Module({
  imports: [WebhooksCoreModule, AuditModule, AlertsModule],
  providers: [
    EndpointLeases,
    DeliveriesRepository,
    OwnedDeliveries,
    DeliveryTracesRepository,
    AttemptRecorder,
    {
      provide: WebhookSender,
      inject: [APP_CONFIG, TargetPolicy],
      useFactory: ({ webhooks }: AppConfig, policy: TargetPolicy) =>
        new WebhookSender({
          timeoutMs: webhooks.timeoutMs,
          policy,
          resolve: webhooks.allowPrivateTargets ? systemResolver() : nameServerResolver(),
        }),
    },
    DeliveryWorker,
    BacklogRunner,
    BacklogRepository,
    DiscardsRepository,
    DiscardDeliveries,
    EndedDeliveryCounts,
    EndedEndpointAlerts,
    WebhookMetrics,
    WebhookMaintenance,
  ],
})
export class WebhooksWorkerModule {}
