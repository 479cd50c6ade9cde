import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DynamicModule, Type } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { AccessLog } from '../call-log/index.js';
import type { ListenAddress } from '../config/index.js';
import {
  type Authenticator,
  createEdgeAdapter,
  type EdgeOptions,
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
  /** Closes gracefully. After `withinMs` milliseconds, cuts the connections that callers still hold. */
  close(withinMs: number): Promise<void>;
}

export interface RunningHttpApp extends RunningApp {
  /** No trailing slash, e.g. `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly nest: NestFastifyApplication;
}

export interface PortOptions extends Omit<
  EdgeOptions,
  'services' | 'socketLimits' | 'listensAt' | 'closeWithinMs' | 'onUnexpectedError'
> {
  /** Port label in metrics: `partner`, `admin`, `portal`, `install`, `callbacks`, `ops`. */
  readonly port: string;
  readonly module: DynamicModule | Type;
  readonly listen: ListenAddress;
  readonly services: (app: NestFastifyApplication) => EdgeServices;
  /** Checks the app, or adds routes to those of Nest, before the app initializes. @throws Error */
  readonly prepare?: (app: NestFastifyApplication, fastify: FastifyInstance) => void;
}

/**
 * Builds a Nest app behind the edge and listens. @throws Error for an unguarded route, a POST without idempotency, or a
 * taken port
 */
export async function startPort(
  process: Pick<ProcessResources, 'config' | 'logger' | 'metrics'>,
  { port, module, listen, services: servicesOf, prepare, ...edge }: PortOptions,
): Promise<RunningHttpApp> {
  const { logger } = process;
  const onUnexpectedError = (error: unknown, requestId: string): void => {
    logger.error({ event: 'http.unexpected_error', requestId, err: error }, 'unexpected error');
  };
  let closeBy = 0;
  const adapter = createEdgeAdapter({
    ...edge,
    services: () => services,
    socketLimits: portLimits(process, port, edge.trustProxyHops),
    closeWithinMs: () => Math.max(0, closeBy - performance.now()),
    listensAt: listen.host,
    onUnexpectedError,
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: new NestLogger(logger),
  });
  app.useGlobalFilters(new ProblemFilter(onUnexpectedError));
  // The app starts to listen below, so no call needs the services before they are assigned.
  const services = servicesOf(app);
  const discovery = new DiscoveryService(app.get(ModulesContainer));
  assertEveryRouteIsGuarded(discovery);
  assertEveryPostIsIdempotent(discovery);
  prepare?.(app, adapter.getInstance());
  await app.listen(listen.port, listen.host);
  const address = app.getHttpServer().address() as AddressInfo;
  const shown =
    listen.host === '0.0.0.0' ? '127.0.0.1' : listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return {
    url: `http://${shown}:${address.port}`,
    nest: app,
    close: async (withinMs) => {
      // Counted from now, because Nest closes other things before the server.
      closeBy = performance.now() + withinMs;
      await app.close();
    },
  };
}

export interface HttpAppOptions extends Omit<PortOptions, 'services' | 'trustProxyHops'> {
  readonly authenticator: Type<Authenticator>;
}

/**
 * Starts the port of an API. Its calls are logged (D38). Except on the admin port, writes are refused while a restore
 * is open.
 */
export async function startHttpApp(
  process: ProcessResources,
  options: HttpAppOptions,
): Promise<RunningHttpApp> {
  const { config, metrics, tracer, dataSource } = process;
  const { port, authenticator, ...others } = options;
  const running = await startPort(process, {
    ...others,
    port,
    trustProxyHops: config.trustProxyHops,
    tracer,
    namesCalls: port === 'admin',
    services: (app) => ({
      authenticator: app.get(authenticator, { strict: false }),
      recorder: countCalls(metrics, port, app.get(AccessLog, { strict: false })),
    }),
    prepare: (app, fastify) => {
      if (port !== 'admin') app.useGlobalGuards(new WritesGuard(dataSource.manager));
      showOpenRestore(metrics, dataSource.manager);
      options.prepare?.(app, fastify);
    },
  });
  return {
    ...running,
    close: async (withinMs) => {
      await running.close(withinMs);
      // Calls are recorded until the server has closed, and calls whose sockets were cut one turn later.
      for (let turn = 0; turn < 2; turn++) await nextTurn();
      await running.nest.get(AccessLog, { strict: false }).close();
    },
  };
}
