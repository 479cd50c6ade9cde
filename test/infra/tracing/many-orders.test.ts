import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../../harness/index.js';
import { orderEnded } from '../../harness/order-steps.js';
import {
  type ReceivedSpan,
  startTraceCollector,
  type TraceCollector,
} from '../../harness/trace-collector.js';

const ORDERS = 40;

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

describe('orders that are placed at once and taken up together', () => {
  it('keep each to the trace of its own call; a claim that took several is linked with each of them', async () => {
    const answers = await Promise.all(
      Array.from({ length: ORDERS }, () =>
        partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 1 }),
      ),
    );
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

  it('name on the log lines of each call and job the call, the order and the trace', async () => {
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
    // Each of the worker's lines is of one order, whatever began together.
    const ofOthers = lines.filter((line) => line['orderId'] !== undefined && line['orderId'] !== orderId);
    expect(ofOthers.filter((line) => line['trace_id'] === traced.traceId)).toEqual([]);
  });

  it('go where the settings say, by the name and with the headers that they say', () => {
    expect(collector.spans[0]!.resource).toMatchObject({ 'service.name': 'esims-of-a-test' });
    for (const headers of collector.headers) expect(headers['x-tenant']).toBe('ops team');
  });
});

function parentsOf(spans: readonly ReceivedSpan[]): string[] {
  return spans.map(({ parentSpanId }) => parentSpanId ?? '').sort();
}
