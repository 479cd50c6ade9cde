import { Module } from '@nestjs/common';
import { AlertsModule } from '../../alerts/index.js';
import { AuditModule } from '../../audit/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { DailyPartitions } from '../../infra/partitions/index.js';
import { TargetPolicy } from '../target-policy.js';
import { WebhooksCoreModule } from '../webhooks-core.module.js';
import { nameServerResolver, systemResolver } from './address-resolver.js';
import { AttemptRecorder } from './attempt-recorder.js';
import { BacklogRepository } from './backlog.repository.js';
import { DeliveryJobsRepository } from './delivery-jobs.repository.js';
import { DeliveryWorker } from './delivery-worker.js';
import { DeliveryCountsRepository } from './delivery-counts.repository.js';
import { OutcomesRepository } from './outcomes.repository.js';
import { ReplayRunner } from './replay-runner.js';
import { WebhookMetrics } from './webhook-metrics.js';
import { WebhookMaintenance } from './webhook-maintenance.js';
import { WebhookSender } from './webhook-sender.js';

/** Sends what is owed; only the worker role imports it. */
@Module({
  imports: [WebhooksCoreModule, AuditModule, AlertsModule],
  providers: [
    DeliveryJobsRepository,
    OutcomesRepository,
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
    ReplayRunner,
    BacklogRepository,
    DeliveryCountsRepository,
    WebhookMetrics,
    DailyPartitions,
    WebhookMaintenance,
  ],
})
export class WebhooksWorkerModule {}
