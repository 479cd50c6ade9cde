import { Module } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { showBuildInfo } from '../infra/build-info.js';
import { withinLimit } from '../common/time-limit.js';
import { NotFound } from '../common/errors/index.js';
import { WriteProbe } from '../infra/database/index.js';
import type { AuthResult } from '../infra/http/edge/index.js';
import { type RunningHttpApp, startPort } from './http-app.js';
import type { ProcessResources } from './process-resources.js';

/** Anonymous paths of the ops listener (D3). */
export const OPS_PATHS = ['/livez', '/readyz', '/metrics'] as const;

interface OpsAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Node.js metrics of prom-client. Collected once, because prom-client's observers of the event loop and garbage
 * collection never stop.
 */
const NODE_METRICS = new Registry();

/** Resolution of the event loop monitor. `nodejs_eventloop_lag_*` never show less. */
const EVENT_LOOP_LOOK_MS = 20;

function showNodeMetrics(registry: Registry): void {
  if (NODE_METRICS.getMetricsAsArray().length === 0)
    collectDefaultMetrics({ register: NODE_METRICS, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
  for (const { name } of NODE_METRICS.getMetricsAsArray())
    registry.registerMetric(NODE_METRICS.getSingleMetric(name)!);
}

/** Below Prometheus's default scrape timeout of 10 s. */
const SCRAPE_LIMIT_MS = 8_000;
/** Below a prober's timeout. */
const READY_LIMIT_MS = 2_000;

/** Liveness, readiness and metrics of a process. */
export class OpsProbe {
  private ready = false;
  /** The collection in progress. Some metrics run queries, so concurrent scrapes share one collection. */
  private scrape: Promise<OpsAnswer> | null = null;
  private readonly probes: readonly WriteProbe[];

  constructor(
    private readonly process: Pick<ProcessResources, 'role' | 'metrics' | 'pools'>,
    private readonly scrapeLimitMs = SCRAPE_LIMIT_MS,
  ) {
    process.metrics.setDefaultLabels({ role: process.role });
    showNodeMetrics(process.metrics);
    showBuildInfo(process.metrics);
    this.probes = process.pools.map((pool) => new WriteProbe(pool));
  }

  /** `/readyz` returns 503 until this is called with true, and again after a shutdown begins. */
  setReady(ready: boolean): void {
    this.ready = ready;
  }

  /** Serves the ops paths on the admin port, when all roles share a process. */
  serveOn(fastify: FastifyInstance): void {
    for (const path of OPS_PATHS) {
      fastify.route({
        // Some probes send HEAD.
        method: ['GET', 'HEAD'],
        url: path,
        handler: async (_request, reply) => {
          const answer = await this.answer(path);
          return reply.status(answer.status).header('content-type', answer.contentType).send(answer.body);
        },
      });
    }
  }

  async answer(path: (typeof OPS_PATHS)[number]): Promise<OpsAnswer> {
    if (path === '/livez') return plain(200, 'ok');
    if (path === '/readyz') return this.readiness();
    return (this.scrape ??= this.collect().finally(() => (this.scrape = null)));
  }

  private async collect(): Promise<OpsAnswer> {
    const { metrics } = this.process;
    const late = (): Error => new Error('the metrics take too long');
    try {
      const body = await withinLimit(this.scrapeLimitMs, late, () => metrics.metrics());
      return { status: 200, contentType: metrics.contentType, body };
    } catch {
      return plain(503, 'the database does not respond');
    }
  }

  private async readiness(): Promise<OpsAnswer> {
    if (!this.ready) return plain(503, 'not ready');
    const findings = await Promise.all(this.probes.map((probe) => probe.look(READY_LIMIT_MS)));
    const fault = findings.find((finding) => finding !== 'accepts writes');
    return fault === undefined ? plain(200, 'ready') : plain(503, `the database ${fault}`);
  }
}

@Module({})
class OpsModule {}

/** Serves the ops paths on `OPS_HOST:OPS_PORT`, for a role that runs in its own process. */
export async function startOps(process: ProcessResources, probe: OpsProbe): Promise<RunningHttpApp> {
  const nobody: AuthResult = {
    principal: null,
    headers: {},
    refusal: new NotFound(),
    keyId: null,
    partnerId: null,
    mode: null,
  };
  return startPort(process, {
    port: 'ops',
    module: OpsModule,
    listen: process.config.ops,
    trustProxyHops: 0,
    idempotencyKeyRequired: false,
    anonymousPaths: OPS_PATHS,
    services: () => ({
      authenticator: { authenticate: () => Promise.resolve(nobody) },
      recorder: { record: () => undefined },
    }),
    prepare: (_app, fastify) => probe.serveOn(fastify),
  });
}

function plain(status: number, text: string): OpsAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
}
