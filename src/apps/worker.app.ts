import { BullRegistrar } from '@nestjs/bullmq';
import { type DynamicModule, type INestApplicationContext, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ApiKeysWorkerModule } from '../api-keys/index.js';
import { GcraThrottlerStorage, RateLimitStorageModule, toThrottlerLimit } from '../auth/index.js';
import { CallLogWorkerModule } from '../call-log/index.js';
import type { WorkerJob } from '../config/index.js';
import { EsimsWorkerModule } from '../esims/index.js';
import { EventsWorkerModule } from '../events/index.js';
import { NestLogger } from '../infra/logging.js';
import { gaugeIn } from '../infra/metrics.js';
import { type CallbackRateLimit, EsimSyncWorkerModule, TakeCallback } from '../esim-sync/index.js';
import { OrdersWorkerModule } from '../orders/index.js';
import { OverviewWorkerModule } from '../overview/index.js';
import { ReconciliationWorkerModule } from '../reconciliation/index.js';
import { RetentionWorkerModule } from '../retention/index.js';
import { SupportWorkerModule } from '../support/index.js';
import { TopupsWorkerModule } from '../topups/index.js';
import { WalletWorkerModule } from '../wallet/index.js';
import { CatalogSyncWorkerModule } from '../catalog-sync/index.js';
import { WebhooksCoreModule, WebhooksWorkerModule } from '../webhooks/index.js';
import { startCallbacks } from './callbacks.app.js';
import type { RunningApp, RunningHttpApp } from './http-app.js';
import { PartitionsModule } from './partitions.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** Consumers of each job; `WORKER_JOBS` selects the jobs of a process (D68). */
const CONSUMERS: Readonly<Record<WorkerJob, readonly Type[]>> = {
  provisioning: [OrdersWorkerModule, TopupsWorkerModule],
  webhooks: [WebhooksWorkerModule],
  polls: [EsimSyncWorkerModule, CatalogSyncWorkerModule],
  maintenance: [
    EventsWorkerModule,
    EsimsWorkerModule,
    SupportWorkerModule,
    CallLogWorkerModule,
    ApiKeysWorkerModule,
    OverviewWorkerModule,
    ReconciliationWorkerModule,
    RetentionWorkerModule,
    WalletWorkerModule,
  ],
};

/** Runs all slow or uncertain work. No controllers. */
@Module({ imports: [RateLimitStorageModule, WebhooksCoreModule] })
export class WorkerModule {
  static of(process: ProcessResources): DynamicModule {
    const { workerJobs } = process.config;
    const upkeep = workerJobs.includes('maintenance') ? 'maintain' : 'ensure';
    return {
      module: WorkerModule,
      imports: [
        PlatformModule.of(process),
        PartitionsModule.of(upkeep),
        ...workerJobs.flatMap((job) => CONSUMERS[job]),
      ],
    };
  }
}

export interface RunningWorker extends RunningApp {
  /** URL of the callback listener; null if it does not run. */
  readonly callbacksUrl: string | null;
}

/** Starts the worker. Queue workers and callbacks start last, after everything that they call. */
export async function startWorker(process: ProcessResources): Promise<RunningWorker> {
  showJobs(process);
  const app = await NestFactory.createApplicationContext(WorkerModule.of(process), {
    abortOnError: false,
    logger: new NestLogger(process.logger),
  });
  app.get(BullRegistrar, { strict: false }).register();
  const callbacks = await startCallbacksOf(process, app).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  return {
    callbacksUrl: callbacks?.url ?? null,
    // Concurrently, so that a slow sender of callbacks takes no time from running jobs.
    close: async (withinMs) => {
      await Promise.all([callbacks?.close(withinMs), app.close()]);
    },
  };
}

/** Shows which jobs this process runs: an alert fires when no process runs one of them. */
function showJobs({ config, metrics }: ProcessResources): void {
  const jobs = gaugeIn(metrics, {
    name: 'worker_jobs',
    help: 'Always 1, one series per job that this worker process runs.',
    // Prometheus already uses the label `job` for its scrape targets.
    labelNames: ['worker_job'],
  });
  for (const job of config.workerJobs) jobs.set({ worker_job: job }, 1);
}

/** A callback triggers a poll, so only a process that polls listens. */
async function startCallbacksOf(
  process: ProcessResources,
  app: INestApplicationContext,
): Promise<RunningHttpApp | null> {
  if (!process.config.workerJobs.includes('polls')) return null;
  const limit = callbackRateLimit(process, app.get(GcraThrottlerStorage, { strict: false }));
  return startCallbacks(process, app.get(TakeCallback, { strict: false }), limit);
}

/** One bucket per provider and address, shared by all processes (D21). Behind a proxy, providers share an address. */
function callbackRateLimit({ config }: ProcessResources, storage: GcraThrottlerStorage): CallbackRateLimit {
  const { ttl, limit } = toThrottlerLimit(config.callbacks.rateLimit);
  return async (provider, address) => {
    const key = `callback:${provider}:${address}`;
    const { isBlocked, timeToBlockExpire } = await storage.increment(key, ttl, limit);
    return isBlocked ? timeToBlockExpire : null;
  };
}
