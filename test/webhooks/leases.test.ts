import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  testEnvironment,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { deliveryThat, FAST, getDelivery, listDeliveries, recordEvent, registerEndpoint } from './support.js';

const SETTINGS = { ...FAST, LEASE_MS: '600', WEBHOOK_TIMEOUT_MS: '20000', SHUTDOWN_TIMEOUT_MS: '300' };

let admin: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
const workers: TestService[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  admin = await startTestService({ role: 'admin', env: SETTINGS });
});
beforeAll(async () => {
  partner = await admin.createPartner();
  receiver = await startReceiver();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await receiver.close();
  partner = await admin.createPartner();
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.close();
  await admin.stop();
});

async function startWorker(env: Record<string, string> = {}): Promise<TestService> {
  const worker = await startTestService({
    role: 'worker',
    env: { ...SETTINGS, ...env },
    database: admin.database,
  });
  workers.push(worker);
  return worker;
}

/** A worker that can be killed: a process of its own, of the built output. */
async function spawnWorker(env: Record<string, string> = {}): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['dist/src/main.worker.js'], {
    env: { PATH: process.env['PATH'], ...testEnvironment(admin.database.url, { ...SETTINGS, ...env }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the worker did not start')));
  ended.catch(() => undefined);
  await Promise.race([once(child.stdout, 'data'), ended]);
  return child;
}

function hang(): void {
  receiver.answer = () => undefined;
}

function answerOk(): void {
  receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
}

describe('a worker that dies', () => {
  it('loses nothing: the attempt is logged as interrupted and made again with the same ids', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    hang();
    const victim = await spawnWorker({ LEASE_MS: '3000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the first request', () => receiver.received.length === 1);
    victim.kill('SIGKILL');
    answerOk();
    await startWorker({ LEASE_MS: '60000' });
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(delivery.attempts).toMatchObject([
      { number: 1, outcome: 'interrupted', status_code: null, error: 'interrupted' },
      { number: 2, outcome: 'delivered', status_code: 200 },
    ]);
    const [first, second] = receiver.received;
    expect(second!.body).toBe(first!.body);
    expect(second!.headers['x-service-delivery']).toBe(first!.headers['x-service-delivery']);
    expect(receiver.received).toHaveLength(2);
  });

  it('uses up no attempt, until the third interruption in a row counts as one', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    await recordEvent(admin, { partnerId: partner.id });
    const [{ id } = { id: '' }] = await listDeliveries(admin, endpoint);
    await startWorker({
      WEBHOOK_RETRY_DELAYS_MS: '86400000,1,1,1,1',
      SWEEP_INTERVAL_MS: '50',
      // Leases lapse by the statement below alone.
      LEASE_MS: '60000',
    });
    // Each time the worker sees what an owner before it has started; in between it must not send.
    hang();
    for (let death = 1; death <= 3; death++) {
      await eventually(`lease ${death}`, async () => {
        const { rowCount } = await admin.database.pool.query(
          `UPDATE webhook_deliveries SET started_fence = 0, started_at = now() - interval '1 s'
           WHERE id = $1 AND status = 'pending' AND attempt_count = $2`,
          [id, death - 1],
        );
        return rowCount === 1;
      });
      await eventually(
        `interruption ${death}`,
        async () => (await getDelivery(admin, id)).attempt_count === death,
      );
    }
    const delivery = await getDelivery(admin, id);
    expect(delivery.attempts.map((attempt) => attempt.outcome)).toEqual(Array(3).fill('interrupted'));
    expect(delivery.attempts[0]?.latency_ms).toBeGreaterThanOrEqual(1_000);
    expect(Date.parse(String(delivery.next_attempt_at)) - Date.now()).toBeGreaterThan(80_000_000);
    const { rows } = await admin.database.pool.query(
      'SELECT counted_attempts, interruptions FROM webhook_deliveries WHERE id = $1',
      [id],
    );
    expect(rows[0]).toEqual({ counted_attempts: 1, interruptions: 0 });
  });
});

describe('a lease', () => {
  it('is kept alive for as long as the receiver takes, so that nobody sends a second time', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    receiver.answer = (_nth, _webhook, response) => {
      setTimeout(() => response.writeHead(200).end(), 13_000);
    };
    // Twice over while the receiver takes its time, with beats two seconds apart: a busy machine may miss one.
    await startWorker({ LEASE_MS: '6000' });
    await startWorker({ LEASE_MS: '6000' });
    await recordEvent(admin, { partnerId: partner.id });
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(delivery.attempt_count).toBe(1);
    expect(receiver.received).toHaveLength(1);
  });

  it('that is lost lets nothing be recorded: the fence is another', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    let fail = (): void => undefined;
    receiver.answer = (nth, _webhook, response) => {
      if (nth === 0) fail = () => void response.writeHead(500).end();
      else response.writeHead(200).end();
    };
    await startWorker({ LEASE_MS: '60000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    await admin.database.pool.query(
      `UPDATE webhook_endpoint_leases SET owner = 'other', fence = fence + 1, until = now() + interval '1 s'
       WHERE endpoint_id = $1`,
      [endpoint.id],
    );
    fail();
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(delivery.attempts.map((attempt) => attempt.outcome)).toEqual(['interrupted', 'delivered']);
  });
});

describe('a stop', () => {
  it('lets an attempt end that ends in time', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    let answer = (): void => undefined;
    receiver.answer = (_nth, _webhook, response) => {
      answer = () => void response.writeHead(200).end();
    };
    await startWorker({ SHUTDOWN_TIMEOUT_MS: '20000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    const stopping = workers.pop()!.stop();
    // Long after a stop that waits for nothing, and long before the end of its time.
    setTimeout(answer, 500);
    await stopping;
    const [delivery] = await listDeliveries(admin, endpoint);
    expect(delivery).toMatchObject({ status: 'delivered', attempt_count: 1 });
  });

  it('records what it cuts as interrupted, at once due again', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    hang();
    await startWorker();
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    const startedAt = performance.now();
    await workers.pop()!.stop();
    // The attempt itself would have 20 s.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const [{ id } = { id: '' }] = await listDeliveries(admin, endpoint);
    const delivery = await getDelivery(admin, id);
    expect(delivery).toMatchObject({
      status: 'pending',
      attempt_count: 1,
      attempts: [{ outcome: 'interrupted' }],
    });
    const { rows } = await admin.database.pool.query(
      'SELECT counted_attempts, started_at FROM webhook_deliveries WHERE id = $1',
      [id],
    );
    expect(rows[0]).toEqual({ counted_attempts: 0, started_at: null });

    answerOk();
    await startWorker();
    await eventually('delivered', async () => (await getDelivery(admin, id)).status === 'delivered');
    expect(receiver.received).toHaveLength(2);
  });
});

describe('the sweep', () => {
  it('delivers what was recorded while no worker was there to hear of it', async () => {
    const endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
    await recordEvent(admin, { partnerId: partner.id });
    await startWorker();
    await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
  });
});
