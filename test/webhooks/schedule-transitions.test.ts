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
import { EndpointClock } from './schedule-clock.js';
import {
  deliveryThat,
  endpointState,
  listDeliveries,
  recordEvent,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

/** One retry instead of five (D36), so that the second attempt is the last one; blocks as in the document. */
const ENV = { WEBHOOK_RETRY_DELAYS_MS: '30', SWEEP_INTERVAL_MS: '100' };
const OUTLIVES_THE_TEST = { LEASE_MS: '60000' };
const SHORT_LEASE = { LEASE_MS: '3000' };

let office: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;
const workers: RoleChild[] = [];

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
});
beforeEach(async () => {
  partner = await office.createPartner();
  receiver = await startReceiver();
  endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
});
afterEach(async () => {
  workers.forEach((worker) => worker.thaw());
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  await receiver.close();
});
afterAll(() => office.stop());

async function startWorker(env: Record<string, string>): Promise<RoleChild> {
  const worker = await RoleChild.start({
    role: 'worker',
    database: office.database,
    env: { ...ENV, ...env },
  });
  workers.push(worker);
  return worker;
}

async function recordSome(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await recordEvent(office, { partnerId: partner.id });
}

/** First attempts fail at once; last ones wait in the list until the test answers them. */
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

const answerAll = (responses: readonly ServerResponse[], status: number): void =>
  responses.forEach((response) => response.writeHead(status).end());

/**
 * Freezes a worker that is in no transaction: one that is making partitions when it freezes keeps their locks until
 * PostgreSQL ends its session, and that is not what these tests are about.
 */
async function freezeAtRest(worker: RoleChild): Promise<void> {
  await eventually('frozen outside of any transaction', async () => {
    worker.freeze();
    const { rows } = await office.database.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
         AND application_name = 'partner-esim-worker'`,
    );
    if (rows.length > 0) worker.thaw();
    return rows.length === 0;
  });
}

const statusIs = (status: string) =>
  eventually(`the endpoint is ${status}`, async () => {
    const state = await endpointState(office, endpoint);
    return state.status === status ? state : null;
  });

describe('two workers', () => {
  it('do not count a failure that comes back after another worker has delivered: its lease is lost', async () => {
    const held = holdLastAttempts();
    const sleeper = await startWorker(SHORT_LEASE);
    await recordSome(1);
    await eventually('its last attempt', () => held.length === 1);
    await freezeAtRest(sleeper);
    // The failure lies in its socket while it sleeps.
    answerAll(held, 500);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    const other = await startWorker(OUTLIVES_THE_TEST);
    const delivery = await deliveryThat(office, endpoint, 'is delivered', (d) => d.status === 'delivered');
    await other.kill();
    sleeper.thaw();
    // What it sends next shows that it is awake and has read its old answer before.
    await recordSome(1);
    await eventually('both delivered', async () =>
      (await listDeliveries(office, endpoint, '&status=delivered')).length === 2 ? true : null,
    );
    expect(await endpointState(office, endpoint)).toMatchObject({ status: 'enabled', consecutive_blocks: 0 });
    const after = await deliveryThat(office, endpoint, 'is the first', (d) => d.id === delivery.id);
    expect(after.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'interrupted', 'delivered']);
  });
});

describe('a block', () => {
  it('is neither shortened nor kept in the count by a 2xx that was in flight', async () => {
    const held = holdLastAttempts();
    await startWorker(OUTLIVES_THE_TEST);
    await recordSome(2);
    await eventually('both last attempts', () => held.length === 2);
    held[0]!.writeHead(500).end();
    const blocked = await statusIs('blocked');
    expect(blocked.consecutive_blocks).toBe(1);
    held[1]!.writeHead(200).end();
    const after = await eventually('the count is 0', async () => {
      const state = await endpointState(office, endpoint);
      return state.consecutive_blocks === 0 ? state : null;
    });
    expect(after).toMatchObject({ status: 'blocked', blocked_until: blocked.blocked_until });
  });

  it('gets no longer by what fails in it', async () => {
    const held = holdLastAttempts();
    await startWorker(OUTLIVES_THE_TEST);
    await recordSome(2);
    await eventually('both last attempts', () => held.length === 2);
    held[0]!.writeHead(500).end();
    const blocked = await statusIs('blocked');
    held[1]!.writeHead(500).end();
    await eventually('both given up', async () =>
      (await listDeliveries(office, endpoint, '&status=failed')).length === 2 ? true : null,
    );
    const after = await endpointState(office, endpoint);
    expect(after).toMatchObject({
      status: 'blocked',
      blocked_until: blocked.blocked_until,
      consecutive_blocks: 1,
    });
  });

  it('stays in the count when an enabled endpoint is enabled: that changes nothing, and audits nothing', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await startWorker(OUTLIVES_THE_TEST);
    await recordSome(1);
    const blocked = await statusIs('blocked');
    await new EndpointClock(office.database, endpoint.id).advanceTo(blocked.blocked_until);
    const before = await statusIs('enabled');
    expect(before.consecutive_blocks).toBe(1);
    const answer = await office.admin.post(`${endpoint.path}/enable`, { held: 'discard', failed: 'resend' });
    expect([answer.status, answer.body.data]).toEqual([200, before]);
    expect(await listDeliveries(office, endpoint)).toHaveLength(1);
    const audit = await office.admin.get(
      `/internal/v1/audit-log?subject_id=${endpoint.id}&action=webhook_endpoint.enabled`,
    );
    expect(audit.body.data).toEqual([]);
  });
});

describe('attempts cut by deaths of the process', () => {
  it('do not count among the allowed ones; the third in a row does, and is retried on the schedule', async () => {
    receiver.answer = () => undefined;
    const retryMs = 30_000;
    const worker = await startWorker({ LEASE_MS: '60000', WEBHOOK_RETRY_DELAYS_MS: String(retryMs) });
    await recordSome(1);
    for (let death = 1; death <= 3; death++) {
      await eventually(`request ${death}`, () => receiver.received.length === death);
      await worker.kill();
      // Short leases would lapse while the next process of a busy machine is still starting with one.
      await office.database.pool.query(
        'UPDATE webhook_endpoint_leases SET until = now() WHERE endpoint_id = $1',
        [endpoint.id],
      );
      await worker.restart();
    }
    const interrupted = await deliveryThat(office, endpoint, 'was cut thrice', (d) => d.attempt_count === 3);
    expect(interrupted.attempts.map(({ outcome }) => outcome)).toEqual(Array(3).fill('interrupted'));
    const { started_at, latency_ms } = interrupted.attempts[2]!;
    const gapMs =
      Date.parse(String(interrupted.next_attempt_at)) - Date.parse(String(started_at)) - Number(latency_ms);
    expect(Math.abs(gapMs - retryMs)).toBeLessThan(1_000);
    // Had the first two counted, there would be no attempt left.
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    await new EndpointClock(office.database, endpoint.id).advanceTo(String(interrupted.next_attempt_at));
    const failed = await deliveryThat(office, endpoint, 'is given up', (d) => d.status === 'failed');
    expect(failed.attempt_count).toBe(4);
    expect(new Set(receiver.received.map(({ headers }) => headers['x-service-delivery'])).size).toBe(1);
    expect(await endpointState(office, endpoint)).toMatchObject({ status: 'blocked', consecutive_blocks: 1 });
  });
});
