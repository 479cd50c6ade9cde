import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { showBuildInfo } from '../infra/build-info.js';
import { endsWithin } from '../common/ends-within.js';
import { isLoopback, LOCAL_ONLY, namesLocalHost } from '../infra/http/local-host.js';
import { WriteProbe } from '../infra/database/index.js';
import { createPlainServer } from '../infra/http/plain-server.js';
import { portLimits } from './port-limits.js';
import type { ProcessResources } from './process-resources.js';
import type { RunningApp } from './http-app.js';

/** Anonymous paths of the ops listener (D3). */
export const OPS_PATHS = ['/livez', '/readyz', '/metrics'] as const;

interface OpsAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What prom-client shows of Node.js, observed once: its observers of the event loop and of collections never end. */
const NODE_METRICS = new Registry();

/** The timer that tells how late the event loop is; also the least that `nodejs_eventloop_lag_*` ever show. */
const EVENT_LOOP_LOOK_MS = 20;

function showNodeMetrics(registry: Registry): void {
  if (NODE_METRICS.getMetricsAsArray().length === 0)
    collectDefaultMetrics({ register: NODE_METRICS, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
  for (const { name } of NODE_METRICS.getMetricsAsArray())
    registry.registerMetric(NODE_METRICS.getSingleMetric(name)!);
}

/** Less than the 10 s after which Prometheus gives up. */
const SCRAPE_LIMIT_MS = 8_000;
/** Less than a prober waits. */
const READY_LIMIT_MS = 2_000;

/** Liveness, readiness and metrics of a process. */
export class OpsProbe {
  private ready = false;
  /** The collection under way: some of its figures are statements, and whoever asks meanwhile gets the same. */
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

  /** Until this is called, and again once a stop has begun, `/readyz` answers 503. */
  setReady(ready: boolean): void {
    this.ready = ready;
  }

  /** Answers the ops paths on the admin port, when all roles share a process. */
  serveOn(fastify: FastifyInstance): void {
    for (const path of OPS_PATHS) {
      fastify.get(path, async (_request, reply) => {
        const answer = await this.answer(path);
        return reply.status(answer.status).header('content-type', answer.contentType).send(answer.body);
      });
    }
  }

  async answer(path: string): Promise<OpsAnswer> {
    if (path === '/livez') return plain(200, 'ok');
    if (path === '/readyz') return this.readiness();
    if (path === '/metrics') return (this.scrape ??= this.collect().finally(() => (this.scrape = null)));
    return plain(404, 'not found');
  }

  private async collect(): Promise<OpsAnswer> {
    const { metrics } = this.process;
    let body = '';
    const collected = metrics.metrics().then((text) => void (body = text));
    try {
      if (await endsWithin(collected, this.scrapeLimitMs))
        return { status: 200, contentType: metrics.contentType, body };
    } catch {
      // Told below.
    }
    return plain(503, 'the database does not respond');
  }

  private async readiness(): Promise<OpsAnswer> {
    if (!this.ready) return plain(503, 'not ready');
    const findings = await Promise.all(this.probes.map((probe) => probe.look(READY_LIMIT_MS)));
    const fault = findings.find((finding) => finding !== 'accepts writes');
    return fault === undefined ? plain(200, 'ready') : plain(503, `the database ${fault}`);
  }
}

/** Serves the ops paths on `OPS_HOST:OPS_PORT`, for a role that runs apart. */
export async function startOpsServer(
  process: ProcessResources,
  probe: OpsProbe,
): Promise<RunningApp & { url: string }> {
  const { host, port } = process.config.ops;
  const isLocal = isLoopback(host);
  const server = createPlainServer({}, portLimits(process, 'ops', 0), (request, response) => {
    const isForeign = isLocal && request.headers.host !== undefined && !namesLocalHost(request.headers.host);
    if (isForeign) return write(response, plain(403, LOCAL_ONLY));
    void probe.answer((request.url ?? '').split('?', 1)[0]!).then((answer) => write(response, answer));
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
}

function plain(status: number, text: string): OpsAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
}

function write(response: ServerResponse, answer: OpsAnswer): void {
  response.writeHead(answer.status, { 'content-type': answer.contentType }).end(answer.body);
}
