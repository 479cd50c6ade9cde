import type { ServerResponse } from 'node:http';
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
import {
  deliveryThat,
  endpointState,
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  recordEvents,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

const SETTINGS = { ...FAST, LEASE_MS: '60000', WEBHOOK_TIMEOUT_MS: '20000', SHUTDOWN_TIMEOUT_MS: '300' };
const LEASE_MS = 9_000;
/** Longer than a lease, shorter than the responses take. */
const LOCK_MS = 11_000;
const ANSWER_AFTER_MS = 13_000;

let admin: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
const workers: TestService[] = [];
const children: RoleChild[] = [];

beforeAll(async () => {
  admin = await startTestService({ role: 'admin', env: SETTINGS });
});
beforeEach(async () => {
  partner = await admin.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(admin, partner.id, { url: receiver.url });
});
afterEach(async () => {
  children.forEach((child) => child.thaw());
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await receiver.close();
});
afterAll(() => admin.stop());

async function startWorker(env: Record<string, string> = {}): Promise<TestService> {
  const settings = { ...SETTINGS, ...env };
  const worker = await startTestService({ role: 'worker', env: settings, database: admin.database });
  workers.push(worker);
  return worker;
}

/** A worker that can be killed and frozen. */
async function spawnWorker(env: Record<string, string> = {}): Promise<RoleChild> {
  const settings = { ...SETTINGS, ...env };
  const child = await RoleChild.start({ role: 'worker', env: settings, database: admin.database });
  children.push(child);
  return child;
}

const query = (text: string, values: unknown[] = []) => admin.database.pool.query(text, values);

function hang(): void {
  receiver.answer = () => undefined;
}

function answerOk(): void {
  receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
}

describe('a dying worker', () => {
  it('loses nothing: the attempt is logged as interrupted and repeated with the same ids', async () => {
    hang();
    const victim = await spawnWorker({ LEASE_MS: '3000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the first request', () => receiver.received.length === 1);
    await victim.kill();
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

  it('uses up no attempt, but every third interruption in a row counts as an attempt', async () => {
    await recordEvent(admin, { partnerId: partner.id });
    const [{ id } = { id: '' }] = await listDeliveries(admin, endpoint);
    await startWorker({
      WEBHOOK_RETRY_DELAYS_MS: '86400000,1,1,1,1',
      SWEEP_INTERVAL_MS: '50',
      // Leases expire only through the statement below.
      LEASE_MS: '60000',
    });
    // Each time, the worker finds the attempt of an earlier owner and must not send in the meantime.
    hang();
    for (let death = 1; death <= 3; death++) {
      await eventually(`lease ${death}`, async () => {
        const { rowCount } = await query(
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
    const { rows } = await query(
      'SELECT counted_attempts, interruptions FROM webhook_deliveries WHERE id = $1',
      [id],
    );
    expect(rows[0]).toEqual({ counted_attempts: 1, interruptions: 0 });
  });
});

describe('a lease', () => {
  it("is renewed for as long as the receiver takes, even while another delivery's row is locked", async () => {
    const slow = (_nth: number, _webhook: unknown, response: ServerResponse): void =>
      void setTimeout(() => response.writeHead(200).end(), ANSWER_AFTER_MS);
    receiver.answer = slow;
    const other = await startReceiver();
    other.answer = slow;
    const locked = await registerEndpoint(admin, (await admin.createPartner()).id, { url: other.url });
    // Two workers. Either would take over an expired lease.
    await startWorker({ LEASE_MS: String(LEASE_MS) });
    await startWorker({ LEASE_MS: String(LEASE_MS) });
    await recordEvent(admin, { partnerId: partner.id });
    await recordEvent(admin, { partnerId: /partners\/([^/]+)/.exec(locked.path)![1]! });
    await eventually('both requests', () => receiver.received.length === 1 && other.received.length === 1);
    const client = await admin.database.pool.connect();
    try {
      // Simulates an operator who locks the rows in a manual transaction.
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM webhook_deliveries WHERE endpoint_id = $1 FOR UPDATE', [locked.id]);
      await client.query('SELECT pg_sleep($1)', [LOCK_MS / 1_000]);
      await client.query('COMMIT');
    } finally {
      client.release();
    }
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(delivery.attempts.map(({ outcome }) => outcome)).toEqual(['delivered']);
    expect(receiver.received).toHaveLength(1);
    await other.close();
  });

  it('protects by its fence: a worker that lost it can record nothing', async () => {
    let fail = (): void => undefined;
    receiver.answer = (nth, _webhook, response) => {
      if (nth === 0) fail = () => void response.writeHead(500).end();
      else response.writeHead(200).end();
    };
    await startWorker({ LEASE_MS: '60000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    await query(
      `UPDATE webhook_endpoint_leases SET owner = 'other', fence = fence + 1, until = now() + interval '1 s'
       WHERE endpoint_id = $1`,
      [endpoint.id],
    );
    fail();
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    expect(delivery.attempts.map((attempt) => attempt.outcome)).toEqual(['interrupted', 'delivered']);
  });
});

describe('a worker stop', () => {
  it('lets an attempt finish within the time limit', async () => {
    let answer = (): void => undefined;
    receiver.answer = (_nth, _webhook, response) => {
      answer = () => void response.writeHead(200).end();
    };
    await startWorker({ SHUTDOWN_TIMEOUT_MS: '20000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    const stopping = workers.pop()!.stop();
    // Late enough to fail a stop that does not wait, and long before the shutdown timeout.
    setTimeout(answer, 500);
    await stopping;
    const [delivery] = await listDeliveries(admin, endpoint);
    expect(delivery).toMatchObject({ status: 'delivered', attempt_count: 1 });
  });

  it('records an aborted attempt as interrupted and due at once', async () => {
    hang();
    await startWorker();
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('the request', () => receiver.received.length === 1);
    const startedAt = performance.now();
    await workers.pop()!.stop();
    // The attempt's own timeout is 20 s.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const [{ id } = { id: '' }] = await listDeliveries(admin, endpoint);
    const delivery = await getDelivery(admin, id);
    expect(delivery).toMatchObject({
      status: 'pending',
      attempt_count: 1,
      attempts: [{ outcome: 'interrupted' }],
    });
    const { rows } = await query(
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

/** The second attempt is the last. */
const ONE_RETRY = { WEBHOOK_RETRY_DELAYS_MS: '30', SWEEP_INTERVAL_MS: '100' };

/** First attempts fail at once, and last ones wait in the list until the test responds. */
function holdLastAttempts(): ServerResponse[] {
  const held: ServerResponse[] = [];
  const seen = new Set<unknown>();
  receiver.answer = (_nth, { headers }, response) => {
    const id = headers['x-service-delivery'];
    if (seen.has(id)) held.push(response);
    else response.writeHead(500).end();
    seen.add(id);
  };
  return held;
}

/**
 * Freezes a worker outside of a transaction. A worker that freezes while it creates partitions would keep their locks
 * until PostgreSQL ends its session, which these tests do not cover.
 */
async function freezeAtRest(worker: RoleChild): Promise<void> {
  await eventually('frozen outside of any transaction', async () => {
    worker.freeze();
    const { rows } = await query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
         AND application_name = 'partner-esim-worker'`,
    );
    if (rows.length > 0) worker.thaw();
    return rows.length === 0;
  });
}

describe('a worker that wakes up after its lease has expired', () => {
  it('counts no late failure after another worker has delivered', async () => {
    const held = holdLastAttempts();
    const sleeper = await spawnWorker({ ...ONE_RETRY, LEASE_MS: '3000' });
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('its last attempt', () => held.length === 1);
    await freezeAtRest(sleeper);
    // The failure is buffered in its socket while it is frozen.
    held.forEach((response) => response.writeHead(500).end());
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    const other = await startWorker(ONE_RETRY);
    const delivery = await deliveryThat(admin, endpoint, 'is delivered', (d) => d.status === 'delivered');
    await workers.splice(workers.indexOf(other), 1)[0]!.stop();
    sleeper.thaw();
    // Its next webhook shows that it is awake and has read the old response.
    await recordEvent(admin, { partnerId: partner.id });
    await eventually('both delivered', async () =>
      (await listDeliveries(admin, endpoint, '&status=delivered')).length === 2 ? true : null,
    );
    expect(await endpointState(admin, endpoint)).toMatchObject({ status: 'enabled', consecutive_blocks: 0 });
    const after = await deliveryThat(admin, endpoint, 'is the first', (d) => d.id === delivery.id);
    expect(after.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'interrupted', 'delivered']);
  });
});

describe('an endpoint used by several workers', () => {
  const ENDPOINTS = 60;
  /** No endpoint's lease expires by time. */
  const ENV = {
    ...{ LEASE_MS: '120000', WEBHOOK_TIMEOUT_MS: '600000' },
    ...{ SWEEP_INTERVAL_MS: '500', SHUTDOWN_TIMEOUT_MS: '20000' },
  };

  beforeEach(async () => {
    await query('DELETE FROM webhook_endpoint_leases');
    await query('DELETE FROM webhook_deliveries');
    for (let nth = 1; nth < ENDPOINTS / 20; nth++) {
      const { id } = await admin.createPartner();
      partners.push(id);
    }
    partners.push(partner.id);
    for (const id of partners)
      for (let nth = id === partner.id ? 1 : 0; nth < 20; nth++)
        await registerEndpoint(admin, id, { url: receiver.url });
  });
  afterEach(() => partners.splice(0));
  const partners: string[] = [];

  const recordForAll = (): Promise<void> =>
    recordEvents(
      admin,
      partners.map((partnerId) => ({ partnerId })),
    );

  /** The number of endpoints owned by each worker. */
  async function owned(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await query(
      `SELECT owner, count(*)::int AS count FROM webhook_endpoint_leases WHERE owner IS NOT NULL GROUP BY 1`,
    );
    return new Map(rows.map(({ owner, count }) => [owner as string, count as number]));
  }

  async function expectAllDeliveredOnce(): Promise<void> {
    await eventually('nothing is owed', async () => {
      const { rows } = await query('SELECT 1 FROM webhook_deliveries_open LIMIT 1');
      return rows.length === 0;
    });
    const { rows } = await query(
      `SELECT count(*)::int AS n FROM webhook_deliveries WHERE status <> 'delivered' OR attempt_count <> 1`,
    );
    expect(rows[0].n).toBe(0);
  }

  it('moves to a worker that joins under load, and nothing is sent twice', async () => {
    await startWorker(ENV);
    let isDone = false;
    const load = (async () => {
      while (!isDone) {
        await recordForAll();
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    })();
    try {
      await eventually('the first has all', async () => [...(await owned()).values()].includes(ENDPOINTS));
      const known = await owned();
      await startWorker(ENV);
      await eventually('the second has its share', async () =>
        [...(await owned())].some(
          ([owner, count]) => !known.has(owner) && count >= Math.floor(ENDPOINTS / 2) * 0.8,
        ),
      );
      const all = [...(await owned()).values()].reduce((sum, count) => sum + count, 0);
      expect(all).toBeLessThanOrEqual(ENDPOINTS);
    } finally {
      isDone = true;
      await load;
    }
    await expectAllDeliveredOnce();
  });

  it('is released when its worker stops: another continues long before the lease would expire', async () => {
    await startWorker(ENV);
    await recordForAll();
    await eventually('it has all', async () => [...(await owned()).values()].includes(ENDPOINTS));
    await expectAllDeliveredOnce();
    await workers.pop()!.stop();
    expect((await owned()).size).toBe(0);
    await startWorker(ENV);
    await recordForAll();
    await eventually('the other has all', async () => [...(await owned()).values()].includes(ENDPOINTS));
    await expectAllDeliveredOnce();
  });
});
