import { BullRegistrar } from '@nestjs/bullmq';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ApiKeysWorkerModule } from '../api-keys/index.js';
import { GcraThrottlerStorage, RateLimitStorageModule, toThrottlerLimit } from '../auth/index.js';
import { CallLogWorkerModule } from '../call-log/index.js';
import { EsimsWorkerModule } from '../esims/index.js';
import { EventsWorkerModule } from '../events/index.js';
import { NestLogger } from '../infra/logging.js';
import { EsimSyncWorkerModule, TakeCallback } from '../esim-sync/index.js';
import { OrdersWorkerModule } from '../orders/index.js';
import { PortalSessionsWorkerModule } from '../portal-sessions/index.js';
import { ReconciliationWorkerModule } from '../reconciliation/index.js';
import { RetentionWorkerModule } from '../retention/index.js';
import { SupportWorkerModule } from '../support/index.js';
import { TopupsWorkerModule } from '../topups/index.js';
import { WalletWorkerModule } from '../wallet/index.js';
import { CatalogSyncWorkerModule } from '../catalog-sync/index.js';
import { WebhooksCoreModule, WebhooksWorkerModule } from '../webhooks/index.js';
import { type CallbackRateLimit, startCallbacks } from './callbacks.app.js';
import type { RunningApp } from './http-app.js';
import { PartitionsModule } from './partitions.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** Everything slow or uncertain: provisioning, deliveries, expiry, maintenance. No controllers. */
@Module({
  imports: [
    RateLimitStorageModule,
    OrdersWorkerModule,
    TopupsWorkerModule,
    SupportWorkerModule,
    EsimsWorkerModule,
    EsimSyncWorkerModule,
    EventsWorkerModule,
    WebhooksCoreModule,
    WebhooksWorkerModule,
    CallLogWorkerModule,
    ApiKeysWorkerModule,
    PortalSessionsWorkerModule,
    CatalogSyncWorkerModule,
    ReconciliationWorkerModule,
    RetentionWorkerModule,
    WalletWorkerModule,
  ],
})
export class WorkerModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: WorkerModule, imports: [PlatformModule.of(process), PartitionsModule.of('maintain')] };
  }
}

export interface RunningWorker extends RunningApp {
  /** Of the listener for callbacks; null when no callback is taken. */
  readonly callbacksUrl: string | null;
}

/** Starts the worker: its queues' workers and the callbacks last, when everything they call is there. */
export async function startWorker(process: ProcessResources): Promise<RunningWorker> {
  const app = await NestFactory.createApplicationContext(WorkerModule.of(process), {
    abortOnError: false,
    logger: new NestLogger(process.logger),
  });
  app.get(BullRegistrar, { strict: false }).register();
  const take = app.get(TakeCallback, { strict: false });
  const limit = callbackRateLimit(process, app.get(GcraThrottlerStorage, { strict: false }));
  const callbacks = await startCallbacks(process, take, limit).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  return {
    callbacksUrl: callbacks?.url ?? null,
    // Side by side: a sender of callbacks that takes its time must not take it from the work under way.
    close: async (withinMs) => {
      await Promise.all([callbacks?.close(withinMs), app.close()]);
    },
  };
}

/** Every sender address has a bucket, over all processes (D21). */
function callbackRateLimit({ config }: ProcessResources, storage: GcraThrottlerStorage): CallbackRateLimit {
  const { ttl, limit } = toThrottlerLimit(config.callbacks.rateLimit);
  return async (address) => {
    const { isBlocked, timeToBlockExpire } = await storage.increment(`callback:${address}`, ttl, limit);
    return isBlocked ? timeToBlockExpire : null;
  };
}
