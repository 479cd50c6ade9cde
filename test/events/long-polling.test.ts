import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FeedWatch, MAX_WAITING_PER_KEY } from '../../src/events/feed-watch.js';
import {
  type ApiAnswer,
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import type { HttpClient } from '../harness/http-client.js';
import { issueEsim, placeOrder } from '../harness/order-steps.js';
import { BASE, placeTopup, TOPUP_1GB_7D } from '../topups/topup-steps.js';
import { recordEvents } from '../webhooks/support.js';

/** Processes without a worker: purchases stay open until one starts. */
let service: TestService;
let office: TestService;
let partner: TestPartner;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService({
    role: 'api',
    env: { DATABASE_POOL_MAX: '2', RATE_LIMIT_PER_MINUTE: '60', RATE_LIMIT_BURST: '1000' },
  });
  office = await startTestService({ database: service.database, role: 'admin' });
});
beforeEach(async () => {
  partner = await office.createPartner();
  api = service.partnerApi(partner.sandboxKey);
});
afterAll(async () => {
  await office.stop();
  await service.stop();
});

function waitFor(path: string, seconds: number): Promise<ApiAnswer> {
  return api.get(path, { prefer: `wait=${seconds}` });
}

async function untilWaiting(calls: number): Promise<void> {
  const watch = service.process.api!.nest.get(FeedWatch, { strict: false });
  await eventually(`${calls} calls wait`, () => watch.waitingCalls === calls);
}

/** Runs `work` while a worker carries out purchases. */
async function withWorker<T>(work: () => Promise<T>): Promise<T> {
  const worker = await startTestService({ database: service.database, role: 'worker' });
  try {
    return await work();
  } finally {
    await worker.stop();
  }
}

async function openOrder(): Promise<string> {
  return (await placeOrder(api, { package_id: BASE })).id as string;
}

describe('GET /v1/orders/{id} with Prefer: wait=N', () => {
  it('answers with the end of the order, and sleeps through the events of others', async () => {
    const id = await openOrder();
    const waiting = waitFor(`/v1/orders/${id}`, 25);
    await untilWaiting(1);
    await recordEvents(office, [{ partnerId: partner.id }]);
    await eventually('the other event is listed', async () => (await api.get('/v1/events')).body.data[0]);
    await untilWaiting(1);
    const answer = await withWorker(() => waiting);
    expect(answer.body.data).toMatchObject({ id, status: 'issued' });
    expect(answer.headers.get('preference-applied')).toBe('wait=25');
  });

  it('answers with the open order when the wait is over, and costs one token', async () => {
    const id = await openOrder();
    const startedAt = performance.now();
    const answer = await waitFor(`/v1/orders/${id}`, 1);
    expect(performance.now() - startedAt).toBeGreaterThan(950);
    expect(answer.body.data).toMatchObject({ id, status: 'pending' });
    expect(answer.headers.get('preference-applied')).toBe('wait=1');
    const [limit, left] = ['limit', 'remaining'].map((name) =>
      Number(answer.headers.get(`x-ratelimit-${name}`)),
    );
    // The POST and the GET of this key, minus refilled tokens.
    expect(limit! - left!).toBeLessThanOrEqual(2);
  });

  it('answers at once for an ended order, and with 404 for an unknown one', async () => {
    const esimId = await withWorker(() => issueEsim(api, BASE));
    const orderId = (await api.get(`/v1/esims/${esimId}`)).body.data.order_id as string;
    const startedAt = performance.now();
    const ended = await waitFor(`/v1/orders/${orderId}`, 25);
    expect(ended.body.data.status).toBe('issued');
    expect(ended.headers.get('preference-applied')).toBe('wait=25');
    const stranger = service.partnerApi((await office.createPartner()).sandboxKey);
    const refused = await stranger.get(`/v1/orders/${orderId}`, { prefer: 'wait=25' });
    expect(refused.status).toBe(404);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  it('answers when a cancellation was refused, which no event reports', async () => {
    const esimId = await withWorker(() => issueEsim(api, BASE));
    const orderId = (await api.get(`/v1/esims/${esimId}`)).body.data.order_id as string;
    expect((await api.post(`/v1/orders/${orderId}/cancel`)).status).toBe(202);
    expect((await api.post(`/v1/sandbox/esims/${esimId}/activate`)).status).toBe(200);
    const waiting = waitFor(`/v1/orders/${orderId}`, 25);
    await untilWaiting(1);
    const { data } = (await withWorker(() => waiting)).body;
    expect(data).toMatchObject({ status: 'issued', cancel_failure: { code: 'provider_rejected' } });
  });

  it('holds no connection, and answers at once beyond the limit of waits', async () => {
    const id = await openOrder();
    const waiting = Array.from({ length: MAX_WAITING_PER_KEY }, () => waitFor(`/v1/orders/${id}`, 25));
    await untilWaiting(MAX_WAITING_PER_KEY);
    const crowded = await waitFor(`/v1/orders/${id}`, 25);
    expect(crowded.body.data).toMatchObject({ id, status: 'pending' });
    expect(crowded.headers.get('preference-applied')).toBeNull();
    // The pool has two connections, and eight calls wait.
    const reads = ['/v1/orders', '/v1/esims', `/v1/orders/${id}`].map((path) => api.get(path));
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const answers = await withWorker(() => Promise.all(waiting));
    expect(new Set(answers.map(({ body }) => body.data.status as string))).toEqual(new Set(['issued']));
  });
});

describe('GET /v1/topups/{id} with Prefer: wait=N', () => {
  it('answers with the end of the top-up', async () => {
    const esimId = await withWorker(() => issueEsim(api, BASE));
    const { id } = await placeTopup(api, { esim_id: esimId, package_id: TOPUP_1GB_7D });
    const waiting = waitFor(`/v1/topups/${id}`, 25);
    await untilWaiting(1);
    const answer = await withWorker(() => waiting);
    expect(answer.body.data).toMatchObject({ id, status: 'completed' });
    expect(answer.headers.get('preference-applied')).toBe('wait=25');
  });
});
