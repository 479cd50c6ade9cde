import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WorkerNotifier } from '../../../src/infra/jobs/index.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../../harness/index.js';
import { orderEnded } from '../../harness/order-steps.js';
import { ADMIN_TOKEN } from '../../harness/settings.js';
import {
  type ReceivedSpan,
  startTraceCollector,
  type TraceCollector,
} from '../../harness/trace-collector.js';

const ORDERS = 40;

const CALLERS = { tracestate: 'vendor=of-the-caller', baggage: 'user=of-the-caller' };

function callersTrace(flags: '00' | '01'): {
  traceId: string;
  spanId: string;
  headers: Record<string, string>;
} {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { ...CALLERS, traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

let collector: TraceCollector;
let service: TestService;
let partner: TestPartner;
const logLines: string[] = [];

beforeAll(async () => {
  collector = await startTraceCollector();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=ops%20team',
    OTEL_SERVICE_NAME: 'esims-of-a-test',
  };
  service = await startTestService({ env, logLines });
  partner = await service.createPartner();
});

afterAll(async () => {
  await service.stop();
  await collector.close();
});

const jobs = () => collector.spans.filter(({ name }) => name === 'process order');

describe('an order that is placed and claimed together with others', () => {
  it('stays in the trace of its own call, and the shared claim links to each order', async () => {
    // As in a process without a worker: otherwise, no order needs a claim.
    const reserving = vi.spyOn(WorkerNotifier.prototype, 'reserve').mockReturnValue(null);
    const answers = await Promise.all(
      Array.from({ length: ORDERS }, () =>
        partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 1 }),
      ),
    );
    reserving.mockRestore();
    for (const { body } of answers) await orderEnded(partner.sandbox, body.data.id as string);
    await eventually('all spans', () => jobs().length >= ORDERS);
    const byRequest = new Map(
      collector.spans
        .filter(({ name }) => name === 'POST /v1/orders')
        .map((span) => [span.attributes['esim.request_id'], span]),
    );
    for (const answer of answers) {
      const call = byRequest.get(answer.headers.get('x-request-id')!)!;
      const job = jobs().find(({ attributes }) => attributes['esim.order_id'] === answer.body.data.id)!;
      expect(job).toMatchObject({ traceId: call.traceId, parentSpanId: call.spanId });
    }
    expect(new Set(jobs().map(({ traceId }) => traceId)).size).toBe(ORDERS);
    const claims = collector.spans.filter(({ name }) => name === 'claim orders');
    expect(claims.length).toBeGreaterThan(0);
    for (const claim of claims) {
      const together = jobs().filter(({ links }) => links.some(({ spanId }) => spanId === claim.spanId));
      expect(together).toHaveLength(claim.attributes['esim.jobs'] as number);
      expect(claim.links.map(({ spanId }) => spanId).sort()).toEqual(parentsOf(together));
    }
  });

  it('has the call, the order and the trace on every log line', async () => {
    const answer = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_timeout', quantity: 1 });
    const orderId = answer.body.data.id as string;
    await orderEnded(partner.sandbox, orderId);
    const requestId = answer.headers.get('x-request-id')!;
    const traced = await collector.spanThat(
      'accepted it',
      ({ attributes, kind }) => kind === 2 && attributes['esim.request_id'] === requestId,
    );
    const lines = logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const failed = lines.filter(
      (line) => line['event'] === 'order.attempt_failed' && line['orderId'] === orderId,
    );
    expect(failed.length).toBeGreaterThan(0);
    const ids = { requestId, trace_id: traced.traceId };
    for (const line of failed) expect(line).toMatchObject(ids);
    const call = lines.find((line) => line['event'] === 'http.call' && line['requestId'] === requestId);
    expect(call).toMatchObject(ids);
    // Each of the worker's lines belongs to one order, even if several started together.
    const ofOthers = lines.filter((line) => line['orderId'] !== undefined && line['orderId'] !== orderId);
    expect(ofOthers.filter((line) => line['trace_id'] === traced.traceId)).toEqual([]);
  });

  it('is exported to the configured endpoint, with its service name and headers', () => {
    expect(collector.spans[0]!.resource).toMatchObject({ 'service.name': 'esims-of-a-test' });
    for (const headers of collector.headers) expect(headers['x-tenant']).toBe('ops team');
  });
});

function parentsOf(spans: readonly ReceivedSpan[]): string[] {
  return spans.map(({ parentSpanId }) => parentSpanId ?? '').sort();
}

const PORTS = ['partner', 'admin', 'portal'] as const;

function call(
  { process }: TestService,
  port: (typeof PORTS)[number],
  headers: Record<string, string>,
): Promise<Response> {
  const { api, admin, portal } = process;
  const [url, token] = {
    partner: [`${api!.url}/v1/me`, partner.sandboxKey],
    admin: [`${admin!.url}/internal/v1/partners`, ADMIN_TOKEN],
    portal: [`${portal!.url}/portal/v1/session`, ''],
  }[port];
  return fetch(url!, { headers: { ...headers, authorization: `Bearer ${token!}` } });
}

describe.each(PORTS)("a caller's trace on the %s port", (port) => {
  it.each(['00', '01'] as const)('is linked from our own trace with the flags %s', async (flags) => {
    const { traceId, spanId, headers } = callersTrace(flags);
    const answer = await call(service, port, headers);
    await answer.text();
    const span = await collector.spanThat(`is linked with ${traceId}`, (each) =>
      each.links.some((link) => link.traceId === traceId),
    );
    expect(span).toMatchObject({ kind: 2, links: [{ traceId, spanId }] });
    expect([span.traceId === traceId, span.parentSpanId ?? '']).toEqual([false, '']);
    expect(collector.spans.filter((each) => each.traceId === traceId)).toEqual([]);
    expect(['traceparent', 'tracestate', 'baggage'].filter((name) => answer.headers.has(name))).toEqual([]);
    expect(collector.bodies.join('\n')).not.toContain('of-the-caller');
  });
});

it('does not sample a trace because the caller samples its own', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const sampler = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
  const dropped = await startTestService({ database: service.database, env: { ...env, ...sampler } });
  const theirs = callersTrace('01');
  for (const port of PORTS) await (await call(dropped, port, theirs.headers)).text();
  // A stop exports pending spans.
  await dropped.stop();
  const own = callersTrace('01');
  await (await call(service, 'admin', own.headers)).text();
  await collector.spanThat('came after all of those', ({ links }) => links[0]?.traceId === own.traceId);
  expect(collector.bodies.join('\n')).not.toContain(theirs.traceId);
});
