import { AsyncLocalStorage } from 'node:async_hooks';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RunningHttpApp } from '../../src/apps/http-app.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let base: string;
let endpoint: string;

beforeAll(async () => {
  service = await startTestService({
    env: {
      WEBHOOK_RETRY_DELAYS_MS: '50,50',
      WEBHOOK_BLOCK_MS: '100',
      WEBHOOK_BLOCKS_BEFORE_DISABLE: '1',
      LEASE_MS: '30000',
    },
  });
  receiver = await startReceiver();
  partner = await service.createPartner();
  base = `/internal/v1/partners/${partner.id}`;
  const made = await service.admin.post(`${base}/webhook-endpoints`, { mode: 'sandbox', url: receiver.url });
  endpoint = made.body.data.id as string;
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly last_attempt: {
    number: number;
    outcome: string;
    status_code: number | null;
    error: string | null;
  } | null;
}

const deliveries = async (filter = ''): Promise<readonly Delivery[]> =>
  (await service.admin.get(`${base}/webhook-endpoints/${endpoint}/deliveries${filter}`)).body
    .data as Delivery[];
const shown = async () => (await service.admin.get(`${base}/webhook-endpoints/${endpoint}`)).body.data;
const order = () => partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });

describe('the statistics panel of an endpoint', () => {
  it('starts at zero, with a bucket for each quarter of an hour', async () => {
    expect(await shown()).toMatchObject({
      last_success_at: null,
      pending_count: 0,
      held_count: 0,
      failed_since_last_success: 0,
      previous_secret_until: null,
    });
    const stats = (await service.admin.get(`${base}/webhook-endpoints/${endpoint}/stats`)).body.data;
    expect(stats).toMatchObject({ window: '24h', bucket_seconds: 900 });
    expect(stats.buckets).toHaveLength(96);
    expect(stats.buckets[95]).toMatchObject({ delivered: 0, failed: 0, p50_ms: null, p95_ms: null });
  });

  it('counts delivered, failed and held events, but not tests', async () => {
    await order();
    await eventually('a delivery', async () => (await deliveries('?status=delivered')).length === 1);
    await service.admin.post(`${base}/webhook-endpoints/${endpoint}/test`);
    await eventually('a test', async () => (await deliveries('?status=delivered')).length === 2);
    const success = (await shown()).last_success_at as string;
    expect(Date.parse(success)).toBeGreaterThan(0);

    receiver.answer = (_nth, _hook, response) => void response.writeHead(503).end();
    await order();
    await eventually('the endpoint is disabled', async () => (await shown()).status === 'disabled');
    await order();
    await eventually('something is held', async () => (await shown()).held_count > 0);
    expect(await shown()).toMatchObject({
      last_success_at: success,
      pending_count: 0,
      held_count: 1,
      failed_since_last_success: 1,
    });
    const { buckets } = (await service.admin.get(`${base}/webhook-endpoints/${endpoint}/stats?window=1h`))
      .body.data;
    const sum = (name: 'delivered' | 'failed') =>
      (buckets as Record<string, number>[]).reduce((total, bucket) => total + bucket[name]!, 0);
    expect([sum('delivered'), sum('failed')]).toEqual([1, 3]);
    const busy = (
      buckets as { delivered: number; failed: number; p50_ms: number | null; p95_ms: number | null }[]
    ).filter((bucket) => bucket.delivered + bucket.failed > 0);
    for (const bucket of busy) expect(bucket.p95_ms!).toBeGreaterThanOrEqual(bucket.p50_ms!);
    const listed = (await service.admin.get(`${base}/webhook-endpoints`)).body.data;
    expect(listed[0]).toEqual(await shown());
  });

  it('restarts at the last success', async () => {
    receiver.answer = (_nth, _hook, response) => void response.writeHead(204).end();
    await service.admin.post(`${base}/webhook-endpoints/${endpoint}/enable`, { failed: 'leave' });
    await eventually(
      'what was held is sent',
      async () => (await deliveries('?status_code=204')).length === 1,
    );
    expect(await shown()).toMatchObject({ held_count: 0, failed_since_last_success: 0 });
  });
});

describe('the delivery log', () => {
  it('shows the last attempt of each delivery, and filters deliveries by it', async () => {
    const [all, failed] = [await deliveries(), await deliveries('?outcome=failed')];
    expect(all).toHaveLength(4);
    expect(failed.map(({ status }) => status)).toEqual(['failed']);
    expect(failed[0]!.last_attempt).toMatchObject({ number: 3, outcome: 'failed', status_code: 503 });
    const log = (await service.admin.get(`/internal/v1/deliveries/${failed[0]!.id}`)).body.data;
    const { number, started_at, outcome, status_code, latency_ms, error } = log.attempts[2];
    expect(log.last_attempt).toEqual({ number, started_at, outcome, status_code, latency_ms, error });
    const ids = async (filter: string) => (await deliveries(filter)).map(({ id }) => id);
    const withCode = (code: number) =>
      all.filter((each) => each.last_attempt?.status_code === code).map(({ id }) => id);
    for (const code of [200, 204, 503]) expect(await ids(`?status_code=${code}`)).toEqual(withCode(code));
    expect(await ids('?outcome=delivered')).toEqual(
      all.filter(({ status }) => status === 'delivered').map(({ id }) => id),
    );
    expect(await ids('?status_code=503&outcome=delivered')).toEqual([]);
    expect(
      (await service.admin.get(`${base}/webhook-endpoints/${endpoint}/deliveries?outcome=late`)).status,
    ).toBe(400);
  });

  it('runs as many statements for a page of many endpoints as for one', async () => {
    const statements = await countStatements(service.process.admin!, () =>
      service.admin.get(`${base}/webhook-endpoints`),
    );
    expect(statements).toBeGreaterThan(0);
    for (let n = 0; n < 5; n++)
      await service.admin.post(`${base}/webhook-endpoints`, { mode: 'live', url: receiver.url });
    expect(
      await countStatements(service.process.admin!, () => service.admin.get(`${base}/webhook-endpoints`)),
    ).toBe(statements);
  });
});

/** Statements that the server runs for the request of `call`, not counting those of the worker. */
async function countStatements(app: RunningHttpApp, call: () => Promise<unknown>): Promise<number> {
  const { logger } = app.nest.get(DataSource, { strict: false });
  const server = app.nest.getHttpServer();
  const requests = new AsyncLocalStorage<true>();
  let statements = 0;
  const logged = vi.spyOn(logger, 'logQuery').mockImplementation(() => {
    if (requests.getStore()) statements++;
  });
  // Runs before the service's own listener, which then runs in this async context.
  const enter = () => requests.enterWith(true);
  server.prependListener('request', enter);
  try {
    await call();
  } finally {
    server.off('request', enter);
    logged.mockRestore();
  }
  return statements;
}

describe('the list of keys or requests', () => {
  it('shows who created a key and how often it was used in the last day', async () => {
    await eventually('its calls are counted', async () => {
      const { data } = (await service.admin.get(`${base}/api-keys`)).body as {
        data: { uses_24h: number; created_by: string | null }[];
      };
      expect(data[0]).toMatchObject({ created_by: 'portal' });
      return data[0]!.uses_24h === 3;
    });
  });

  it('can be filtered by error code', async () => {
    await partner.sandbox.get('/v1/orders/ord_01KAEXAMPLE000000000000000');
    const found = async () =>
      (await service.admin.get(`${base}/requests?error_code=not_found`)).body.data as object[];
    await eventually('the refused call', async () => (await found()).length === 1);
    expect((await found())[0]).toMatchObject({ status: 404, error_code: 'not_found' });
    expect((await service.admin.get(`${base}/requests?error_code=nothing`)).status).toBe(400);
  });
});

describe('a page of many rows', () => {
  const cases: readonly (readonly [string, () => string, () => Promise<unknown>])[] = [
    ['keys', () => `${base}/api-keys`, () => service.admin.post(`${base}/api-keys`, { mode: 'sandbox' })],
    [
      'deliveries',
      () => `${base}/webhook-endpoints/${endpoint}/deliveries`,
      () => service.admin.post(`${base}/webhook-endpoints/${endpoint}/test`),
    ],
    ['requests', () => `${base}/requests`, () => partner.sandbox.get('/v1/me')],
    [
      'orders',
      () => `${base}/orders`,
      () => partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 3 }),
    ],
  ];

  it.each(cases)('costs as many statements as a page of one: %s', async (_what, list, addOne) => {
    const rows = async (): Promise<number> =>
      ((await service.admin.get(list())).body.data as object[]).length;
    const statements = () => countStatements(service.process.admin!, () => service.admin.get(list()));
    await addOne();
    await eventually('the first', async () => (await rows()) > 0);
    const [before, few] = [await rows(), await statements()];
    for (let n = 0; n < 5; n++) await addOne();
    await eventually('the others', async () => (await rows()) >= before + 5);
    expect(few).toBeGreaterThan(0);
    expect(await statements()).toBe(few);
  });
});
