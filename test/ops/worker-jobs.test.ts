import { afterEach, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

/** Stop functions, last started first. */
let started: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of started.reverse()) await stop();
  started = [];
});

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  started.push(() => database.drop());
  return database;
}

async function newReceiver(): Promise<TestReceiver> {
  const receiver = await startReceiver();
  started.push(() => receiver.close());
  return receiver;
}

async function start(
  database: TestDatabase,
  role: 'api' | 'admin' | 'worker',
  env: Record<string, string> = {},
): Promise<TestService> {
  const service = await startTestService({ database, role, env: { SWEEP_INTERVAL_MS: '100', ...env } });
  started.push(() => service.stop());
  return service;
}

it('runs only the jobs of WORKER_JOBS in a worker process, and another process runs the rest', async () => {
  const database = await newDatabase();
  const receiver = await newReceiver();
  const [api, admin] = [await start(database, 'api'), await start(database, 'admin')];
  const partner = await admin.createPartner();
  const partnerApi = api.partnerApi(partner.sandboxKey);
  const endpoint = await admin.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    mode: 'sandbox',
    url: receiver.url,
  });
  const endpointPath = `/internal/v1/partners/${partner.id}/webhook-endpoints/${endpoint.body.data.id}`;
  const sent = (type: string): Promise<unknown> =>
    eventually(`${type} is received`, async () =>
      Promise.resolve(receiver.received.some(({ headers }) => headers['x-service-event'] === type)),
    );

  const webhooks = await start(database, 'worker', { WORKER_JOBS: 'webhooks' });
  const { id } = await placeOrder(partnerApi, { package_id: 'pkg_fr_1gb_7d' });
  expect((await admin.admin.post(`${endpointPath}/test`)).status).toBe(202);
  await sent('webhook.test');
  expect((await partnerApi.get(`/v1/orders/${id}`)).body.data.status).toBe('pending');

  const provisioning = await start(database, 'worker', { WORKER_JOBS: 'provisioning, polls' });
  expect(await orderEnded(partnerApi, id as string)).toMatchObject({ status: 'issued' });
  await sent('order.issued');
  expect(await jobsShownBy(webhooks)).toEqual(['webhooks']);
  expect(await jobsShownBy(provisioning)).toEqual(['polls', 'provisioning']);

  await webhooks.stop();
  const second = await placeOrder(partnerApi, { package_id: 'pkg_fr_1gb_7d' });
  await orderEnded(partnerApi, second['id'] as string);
  const { body } = await admin.admin.get(`${endpointPath}/deliveries?event_type=order.issued`);
  expect((body.data as { status: string }[]).map(({ status }) => status)).toEqual(['pending', 'delivered']);
});

it('accepts callbacks only in a worker that polls, and callbacks lead to polls', async () => {
  const database = await newDatabase();
  const env = { CALLBACK_PORT: '0', CALLBACK_SECRET: 'c'.repeat(40) };
  const others = await start(database, 'worker', {
    ...env,
    WORKER_JOBS: 'provisioning,webhooks,maintenance',
  });
  expect(others.process.callbacksUrl).toBeNull();
  const polls = await start(database, 'worker', { ...env, WORKER_JOBS: 'polls' });
  expect(polls.process.callbacksUrl).toMatch(/^http:/);
});

async function jobsShownBy({ process }: TestService): Promise<readonly unknown[]> {
  const { values } = await process.resources.metrics.getSingleMetric('worker_jobs')!.get();
  return values.map(({ labels }) => labels['worker_job']).sort();
}
