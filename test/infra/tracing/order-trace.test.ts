import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../harness/index.js';
import type { Json } from '../../harness/order-steps.js';
import type { ReceivedSpan, TraceCollector } from '../../harness/trace-collector.js';
import { EsimAccessUpstream } from '../../live/esim-access-upstream.js';
import { settled } from '../../live/shop.js';
import { TracedShop } from './traced-shop.js';

/** Trace context sent by a partner or a proxy. */
const THEIRS = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') };

let upstream: EsimAccessUpstream;
let traced: TracedShop;
let collector: TraceCollector;
/** Texts that no span may contain. */
const secrets: Record<string, string> = {};
let requestId = '';
let order: Json;
let accepted: ReceivedSpan;
/** The whole trace of the order, including the second attempt of its webhook. */
let trace: readonly ReceivedSpan[];

beforeAll(async () => {
  upstream = await EsimAccessUpstream.start();
  traced = await TracedShop.open(upstream);
  ({ collector } = traced);
  const { shop } = traced;
  const { id } = await shop.office.createPartner();
  const key = await shop.office.createKey(id, 'live');
  const api = traced.partnerApi(key);
  const buyer = { id, api };
  const path = randomBytes(12).toString('hex');
  const endpoint = await shop.office.admin.post(`/internal/v1/partners/${id}/webhook-endpoints`, {
    mode: 'live',
    url: `${shop.receiver.url}/${path}?token=${path}`,
  });
  expect(endpoint.status, endpoint.text).toBe(201);
  await shop.deposit(buyer, 100_000);
  shop.receiver.answer = (nth, _webhook, response) => void response.writeHead(nth === 0 ? 503 : 200).end();
  const answer = await api.post(
    '/v1/orders',
    { package_id: upstream.packageId, quantity: 1, reference: 'their-own-reference' },
    { headers: { traceparent: `00-${THEIRS.traceId}-${THEIRS.spanId}-00` } },
  );
  expect(answer.status, answer.text).toBe(202);
  requestId = answer.headers.get('x-request-id')!;
  order = await settled(buyer, answer.body.data as Json);
  const [{ esim_id: esimId }] = order['esims'] as [{ esim_id: string }];
  const esim = (await api.get(`/v1/esims/${esimId}`)).body.data as Json;
  Object.assign(secrets, {
    key,
    signingSecret: endpoint.body.data.secret,
    iccid: esim['iccid'],
    activationCode: esim['activation_code'],
    receiversPath: path,
    accessCode: upstream.settings('')['ESIM_ACCESS_CODE'],
    upstreamSecret: upstream.settings('')['ESIM_ACCESS_SECRET'],
    providerReference: await shop.referenceOf(order['id'] as string),
    reference: 'their-own-reference',
  });
  await eventually('the event was taken at the second attempt', () => shop.receiver.received.length === 2);
  accepted = await collector.spanThat('accepted the order', isOf('POST /v1/orders'));
  await eventually('all of the trace', () => ofTrace().filter(isOf('webhook order.issued')).length === 2);
  // The span of this read ends last, so everything about the secrets has arrived.
  await collector.spanThat('read the eSIM', isOf('GET /v1/esims/:id'));
  trace = ofTrace();
});

afterAll(async () => {
  await traced.close();
  await upstream.close();
});

const isOf = (name: string) => (span: ReceivedSpan) => span.name === name;
const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === accepted.traceId);
const only = (name: string): ReceivedSpan => {
  const found = trace.filter(isOf(name));
  expect(found, name).toHaveLength(1);
  return found[0]!;
};

describe('a live order, from its POST to its webhook', () => {
  it('is one trace of both roles with consistent parents', () => {
    expect(accepted).toMatchObject({ kind: 2, resource: { 'esim.role': 'api' } });
    expect(accepted.parentSpanId ?? '').toBe('');
    const job = only('process order');
    expect(job).toMatchObject({
      parentSpanId: accepted.spanId,
      kind: 5,
      resource: { 'esim.role': 'worker', 'service.name': 'partner-esim-service' },
    });
    const calls = trace.filter(isOf('esim_access order'));
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect(call).toMatchObject({ parentSpanId: job.spanId, kind: 3 });
    const attempts = trace.filter(isOf('webhook order.issued'));
    for (const attempt of attempts) expect(attempt).toMatchObject({ parentSpanId: job.spanId, kind: 3 });
  });

  it('names the call, the order and the delivery on each of its spans', () => {
    const orderId = order['id'] as string;
    expect(accepted.attributes).toMatchObject({
      'esim.request_id': requestId,
      'http.request.method': 'POST',
      'http.route': '/v1/orders',
      'http.response.status_code': 202,
      'esim.mode': 'live',
    });
    const ids = { 'esim.request_id': requestId, 'esim.order_id': orderId };
    expect(only('process order').attributes).toMatchObject({ ...ids, 'esim.provider': 'esim_access' });
    for (const { attributes } of trace.filter(isOf('esim_access order')))
      expect(attributes).toMatchObject({
        ...ids,
        'esim.purpose': 'order',
        'esim.outcome': 'answered',
        'http.response.status_code': 200,
      });
    for (const { attributes } of trace.filter(isOf('webhook order.issued')))
      expect(attributes).toMatchObject({
        'esim.order_id': orderId,
        'esim.delivery_id': expect.stringMatching(/^dlv_/) as string,
        'esim.endpoint_id': expect.stringMatching(/^whe_/) as string,
        'esim.event_type': 'order.issued',
      });
  });

  it('contains both attempts of its webhook, the second linked to the first', () => {
    const [first, second] = trace.filter(isOf('webhook order.issued')).sort((a, b) => a.startMs - b.startMs);
    expect(first).toMatchObject({ links: [], status: 2 });
    expect(first!.attributes).toMatchObject({
      'esim.attempt': 1,
      'esim.outcome': 'failed',
      'esim.status_class': '5xx',
      'http.response.status_code': 503,
    });
    expect(second!.links).toEqual([{ traceId: first!.traceId, spanId: first!.spanId }]);
    expect(second!.attributes).toMatchObject({
      'esim.attempt': 2,
      'esim.outcome': 'delivered',
      'esim.status_class': '2xx',
    });
    expect(second!.status).not.toBe(2);
  });

  it('is stored in the rows', async () => {
    const { pool } = traced.shop.database;
    const { rows } = await pool.query<{ traceparent: string }>(
      `SELECT traceparent FROM orders WHERE id = $1
       UNION ALL SELECT traceparent FROM events WHERE body LIKE '%' || $1 || '%'`,
      [order['id']],
    );
    const parentOf = (span: ReceivedSpan) => ({ traceparent: `00-${span.traceId}-${span.spanId}-01` });
    expect(rows).toEqual([parentOf(accepted), parentOf(only('process order'))]);
  });

  it("is linked to the caller's trace, but neither part of it nor sampled by it", () => {
    expect(accepted.traceId).not.toBe(THEIRS.traceId);
    expect(accepted.links).toEqual([THEIRS]);
  });

  it('sends the receiver only documented headers', () => {
    const [webhook] = traced.shop.receiver.received;
    expect(Object.keys(webhook!.headers).sort()).toEqual([
      ...['connection', 'content-length', 'content-type', 'host', 'user-agent'],
      ...['x-service-delivery', 'x-service-event', 'x-service-signature'],
    ]);
  });

  it('contains no secret, ICCID, activation code or address', () => {
    const sent = collector.bodies.join('\n');
    // Finding values that are allowed proves that the search covers the right data.
    for (const told of [requestId, order['id'] as string]) expect(sent).toContain(told);
    for (const [name, secret] of Object.entries(secrets)) {
      expect(secret?.length, name).toBeGreaterThan(8);
      expect(sent.includes(secret), name).toBe(false);
    }
  });
});
