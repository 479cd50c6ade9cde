import type { AddressInfo } from 'node:net';
import type { DynamicModule, Type } from '@nestjs/common';
import { DiscoveryService, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { BufferedCallRecorder } from '../call-log/index.js';
import type { ListenAddress } from '../config/index.js';
import {
  createEdgeAdapter,
  type EdgeCall,
  type EdgeGate,
  type FinishedCall,
  ProblemFilter,
} from '../infra/http/edge/index.js';
import { assertEveryRouteIsGuarded } from '../infra/http/index.js';
import { NestLogger } from '../infra/logging/index.js';
import type { ProcessResources } from './process-resources.js';

export interface RunningApp {
  close(): Promise<void>;
}

export interface RunningHttpApp extends RunningApp {
  /** Without a trailing slash, e.g. `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly nest: NestFastifyApplication;
}

export interface HttpAppOptions {
  readonly module: DynamicModule;
  readonly gate: Type<EdgeGate>;
  readonly listen: ListenAddress;
  readonly idempotencyKeyRequired: boolean;
  readonly anonymousPaths?: readonly string[];
  /** Adds routes beside Nest's, before the app initialises. */
  prepare?(fastify: FastifyInstance): void;
}

/** Builds a Nest app behind the edge and listens. @throws Error when a route has no guard or the port is taken. */
export async function startHttpApp(
  process: ProcessResources,
  options: HttpAppOptions,
): Promise<RunningHttpApp> {
  const app = await createHttpApp(process, options);
  const { host, port } = options.listen;
  await app.listen(port, host);
  const address = app.getHttpServer().address() as AddressInfo;
  const shown = host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shown}:${address.port}`,
    nest: app,
    close: async () => {
      await app.close();
      // The last calls are recorded while the server closes.
      await app.get(BufferedCallRecorder, { strict: false }).close();
    },
  };
}

async function createHttpApp(
  process: ProcessResources,
  options: HttpAppOptions,
): Promise<NestFastifyApplication> {
  const { logger, config } = process;
  const onUnexpectedError = (error: unknown, requestId: string): void => {
    logger.error({ event: 'http.unexpected_error', requestId, err: error }, 'unexpected error');
  };
  // The edge is built before the app, and asks the app's own gate and recorder.
  const late: { gate: EdgeGate | null; recorder: BufferedCallRecorder | null } = {
    gate: null,
    recorder: null,
  };
  const adapter = createEdgeAdapter({
    gate: { admit: (call: EdgeCall) => late.gate!.admit(call) },
    recorder: { record: (call: FinishedCall) => late.recorder!.record(call) },
    trustProxyHops: config.trustProxyHops,
    idempotencyKeyRequired: options.idempotencyKeyRequired,
    onUnexpectedError,
    ...(options.anonymousPaths ? { anonymousPaths: options.anonymousPaths } : {}),
  });
  const app = await NestFactory.create<NestFastifyApplication>(options.module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: new NestLogger(logger),
  });
  app.useGlobalFilters(new ProblemFilter(onUnexpectedError));
  late.gate = app.get(options.gate, { strict: false });
  late.recorder = app.get(BufferedCallRecorder, { strict: false });
  assertEveryRouteIsGuarded(app.get(DiscoveryService, { strict: false }));
  options.prepare?.(adapter.getInstance());
  return app;
}
