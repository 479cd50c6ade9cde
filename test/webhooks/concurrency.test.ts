import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { HoldingReceiver } from './holding-receiver.js';
import { arrivedAt } from './rotation-signatures.js';
import { recordEvents, registerEndpoint, type RegisteredEndpoint } from './support.js';

const CAP = 4;
const SWEEP_MS = 100;
/** Many sweeps of both workers: whatever could be sent too much is sent by then. */
const LOOK_MS = 2_000;
const ENV = {
  // What hangs, hangs to the end of its test.
  WEBHOOK_TIMEOUT_MS: '600000',
  WEBHOOK_CONCURRENCY_PER_ENDPOINT: String(CAP),
  WEBHOOK_RETRY_DELAYS_MS: '1',
  SWEEP_INTERVAL_MS: String(SWEEP_MS),
  // A stalled worker's lease would be taken by the other, which would send once more.
  LEASE_MS: '60000',
};

let office: TestService;
let partner: TestPartner;
let holding: HoldingReceiver;
let endpoint: RegisteredEndpoint;
const workers: RoleChild[] = [];
const receivers: TestReceiver[] = [];

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
});
beforeEach(async () => {
  partner = await office.createPartner();
  holding = await HoldingReceiver.start();
  endpoint = await registerEndpoint(office, partner.id, { url: holding.url });
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  await Promise.all([holding.close(), ...receivers.splice(0).map((receiver) => receiver.close())]);
});
afterAll(() => office.stop());

async function startTwoWorkers(): Promise<void> {
  const start = () => RoleChild.start({ role: 'worker', database: office.database, env: ENV });
  workers.push(...(await Promise.all([start(), start()])));
}

const record = (count: number, partnerId = partner.id): Promise<void> =>
  recordEvents(
    office,
    Array.from({ length: count }, () => ({ partnerId })),
  );

async function countOf(status: string): Promise<number> {
  const { rows } = await office.database.pool.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM webhook_deliveries WHERE endpoint_id = $1 AND status = $2',
    [endpoint.id, status],
  );
  return rows[0]!.n;
}

const fullEndpoint = () => eventually('a full endpoint', () => holding.open.length === CAP);

async function expectNoMore(): Promise<void> {
  await sleep(LOOK_MS);
  expect(holding.most).toBe(CAP);
}

describe(`an endpoint, of two worker processes that allow ${CAP} attempts in flight`, () => {
  it('never has more in flight in total, while it hangs and while it answers, and uses all of them', async () => {
    await startTwoWorkers();
    await record(60);
    await fullEndpoint();
    await expectNoMore();
    holding.answerAll(200, 20);
    await eventually('all delivered', async () => (await countOf('delivered')) === 60);
    expect(holding.most).toBe(CAP);
    expect(holding.received).toHaveLength(60);
  });

  it('has no more when what failed is resent, although that is older than what hangs (D32)', async () => {
    // Given up before any worker was there: an outage that these tests need not live through.
    await record(CAP * 20);
    await office.database.pool.query(
      `UPDATE webhook_deliveries SET status = 'failed', failed_at = now(), ended_at = now(), next_attempt_at = NULL
       WHERE endpoint_id = $1`,
      [endpoint.id],
    );
    await startTwoWorkers();
    await record(CAP);
    await fullEndpoint();
    await office.admin.post(`${endpoint.path}/disable`);
    const enabled = await office.admin.post(`${endpoint.path}/enable`, { failed: 'resend' });
    expect(enabled.body.data.status).toBe('enabled');
    expect(await countOf('pending')).toBe(CAP * 21);
    await expectNoMore();
    holding.answerAll(200, 5);
    await eventually('all delivered', async () => (await countOf('delivered')) === CAP * 21);
    expect(holding.most).toBe(CAP);
  });

  it('has no more when what hangs is given up: its attempts are still under way (D32)', async () => {
    await startTwoWorkers();
    await record(CAP);
    await fullEndpoint();
    await office.admin.post(`${endpoint.path}/disable`);
    await office.admin.post(`${endpoint.path}/enable`, { held: 'discard' });
    await record(CAP * 3);
    await expectNoMore();
    holding.answerAll(200, 5);
    await eventually('the later ones', async () => (await countOf('delivered')) >= CAP * 3);
    expect(holding.most).toBe(CAP);
  });
});

describe('a healthy endpoint beside one that hangs', () => {
  it('gets its webhooks as fast as before', async () => {
    await startTwoWorkers();
    const healthy = await office.createPartner();
    const receiver = await startReceiver();
    receivers.push(receiver);
    await registerEndpoint(office, healthy.id, { url: receiver.url });
    await latencies(receiver, healthy.id, 20);
    const before = await latencies(receiver, healthy.id, 100);
    await record(300);
    await fullEndpoint();
    const during = await latencies(receiver, healthy.id, 100);
    console.log(
      `p95 before ${p95(before).toFixed(0)} ms, beside a hanging endpoint ${p95(during).toFixed(0)} ms`,
    );
    expect(holding.open).toHaveLength(CAP);
    // A group that waited for the other would wait for the 60 s timeout; the bound is for a busy machine.
    expect(p95(during)).toBeLessThan(p95(before) * 3 + 5_000);
  });
});

/** Milliseconds from before the recording of an event to its arrival, one event after the other. */
async function latencies(receiver: TestReceiver, partnerId: string, count: number): Promise<number[]> {
  const found: number[] = [];
  for (let i = 0; i < count; i++) {
    const [nth, startedAt] = [receiver.received.length, performance.timeOrigin + performance.now()];
    await record(1, partnerId);
    await eventually('it arrives', () => receiver.received.length > nth);
    found.push(arrivedAt(receiver.received[nth]!) - startedAt);
  }
  return found;
}

function p95(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)]!;
}
