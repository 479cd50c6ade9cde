import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DynamicModule, Type } from '@nestjs/common';
import { DiscoveryService, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { AccessLog } from '../call-log/index.js';
import type { ListenAddress } from '../config/index.js';
import {
  type Authenticator,
  createEdgeAdapter,
  type EdgeServices,
  ProblemFilter,
} from '../infra/http/edge/index.js';
import { assertEveryRouteIsGuarded, countCalls } from '../infra/http/index.js';
import { assertEveryPostIsIdempotent } from '../infra/idempotency/index.js';
import { NestLogger } from '../infra/logging.js';
import { portLimits } from './port-limits.js';
import { showOpenRestore, WritesGuard } from '../restore/index.js';
import type { ProcessResources } from './process-resources.js';

export interface RunningApp {
  /** Ends by itself, and cuts after `withinMs` what callers still hold. */
  close(withinMs: number): Promise<void>;
}

export interface RunningHttpApp extends RunningApp {
  /** No trailing slash, e.g. `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly nest: NestFastifyApplication;
}

export interface HttpAppOptions {
  /** Port label in metrics: `partner`, `admin`, `portal`. */
  readonly port: string;
  readonly module: DynamicModule;
  readonly authenticator: Type<Authenticator>;
  readonly listen: ListenAddress;
  readonly idempotencyKeyRequired: boolean;
  readonly anonymousPaths?: readonly string[];
  /** Further GET paths without authentication: the portal's pages. */
  readonly isPublicPath?: (path: string) => boolean;
  /** The port's own check before the app initializes. @throws Error */
  check?(app: NestFastifyApplication): void;
  /** Adds routes beside Nest's before the app initializes. */
  prepare?(fastify: FastifyInstance): void;
}

/**
 * Builds a Nest app behind the edge and listens. @throws Error for an unguarded route, a POST without idempotency, or a
 * taken port
 */
export async function startHttpApp(
  process: ProcessResources,
  options: HttpAppOptions,
): Promise<RunningHttpApp> {
  let closeBy = 0;
  const app = await createHttpApp(process, options, () => Math.max(0, closeBy - performance.now()));
  const { host, port } = options.listen;
  await app.listen(port, host);
  const address = app.getHttpServer().address() as AddressInfo;
  const shown = host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shown}:${address.port}`,
    nest: app,
    close: async (withinMs) => {
      // From here: Nest has other things to end before it closes the server.
      closeBy = performance.now() + withinMs;
      await app.close();
      // The last calls are recorded while the server closes, and those whose sockets were cut a turn later.
      for (let turn = 0; turn < 2; turn++) await nextTurn();
      await app.get(AccessLog, { strict: false }).close();
    },
  };
}

async function createHttpApp(
  process: ProcessResources,
  options: HttpAppOptions,
  closeWithinMs: () => number,
): Promise<NestFastifyApplication> {
  const { logger, config } = process;
  const onUnexpectedError = (error: unknown, requestId: string): void => {
    logger.error({ event: 'http.unexpected_error', requestId, err: error }, 'unexpected error');
  };
  const adapter = createEdgeAdapter({
    services: () => services,
    trustProxyHops: config.trustProxyHops,
    socketLimits: portLimits(process, options.port, config.trustProxyHops),
    closeWithinMs,
    listensAt: options.listen.host,
    idempotencyKeyRequired: options.idempotencyKeyRequired,
    onUnexpectedError,
    tracer: process.tracer,
    namesCalls: options.port === 'admin',
    ...(options.isPublicPath ? { isPublicPath: options.isPublicPath } : {}),
    ...(options.anonymousPaths ? { anonymousPaths: options.anonymousPaths } : {}),
  });
  const app = await NestFactory.create<NestFastifyApplication>(options.module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: new NestLogger(logger),
  });
  app.useGlobalFilters(new ProblemFilter(onUnexpectedError));
  if (options.port !== 'admin') app.useGlobalGuards(new WritesGuard(process.dataSource.manager));
  showOpenRestore(process.metrics, process.dataSource.manager);
  // Listening comes later, so no call asks for these before they are here.
  const services: EdgeServices = {
    authenticator: app.get(options.authenticator, { strict: false }),
    recorder: countCalls(process.metrics, options.port, app.get(AccessLog, { strict: false })),
  };
  const discovery = app.get(DiscoveryService, { strict: false });
  assertEveryRouteIsGuarded(discovery);
  assertEveryPostIsIdempotent(discovery);
  options.check?.(app);
  options.prepare?.(adapter.getInstance());
  return app;
}
