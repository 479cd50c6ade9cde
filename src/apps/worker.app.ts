import { BullRegistrar } from '@nestjs/bullmq';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ApiKeysWorkerModule } from '../api-keys/index.js';
import { CallLogWorkerModule } from '../call-log/index.js';
import { EsimsWorkerModule } from '../esims/index.js';
import { EventsWorkerModule } from '../events/index.js';
import { NestLogger } from '../infra/logging/index.js';
import { OrdersWorkerModule } from '../orders/index.js';
import { WebhooksCoreModule, WebhooksWorkerModule } from '../webhooks/index.js';
import type { RunningApp } from './http-app.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';

/** Everything slow or uncertain: provisioning, deliveries, expiry, maintenance. No controllers. */
@Module({
  imports: [
    OrdersWorkerModule,
    EsimsWorkerModule,
    EventsWorkerModule,
    WebhooksCoreModule,
    WebhooksWorkerModule,
    CallLogWorkerModule,
    ApiKeysWorkerModule,
  ],
})
export class WorkerModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: WorkerModule, imports: [PlatformModule.of(process)] };
  }
}

/** Starts the worker: its queues' workers last, when everything they call is there. */
export async function startWorker(process: ProcessResources): Promise<RunningApp> {
  const app = await NestFactory.createApplicationContext(WorkerModule.of(process), {
    abortOnError: false,
    logger: new NestLogger(process.logger),
  });
  app.get(BullRegistrar, { strict: false }).register();
  return { close: () => app.close() };
}
