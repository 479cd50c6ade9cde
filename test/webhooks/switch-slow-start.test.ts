import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { HoldingReceiver } from './holding-receiver.js';
import { EndpointClock } from './schedule-clock.js';
import { endpointState, recordEvents, registerEndpoint, type RegisteredEndpoint } from './support.js';

const CAP = 8;
const ANSWER_TAKES_MS = 40;
const BACKLOG = 250;
const ENV = {
  WEBHOOK_CONCURRENCY_PER_ENDPOINT: String(CAP),
  // The second attempt is the last.
  WEBHOOK_RETRY_DELAYS_MS: '1',
  SWEEP_INTERVAL_MS: '100',
  WEBHOOK_TIMEOUT_MS: '8000',
  LEASE_MS: '60000',
  SHUTDOWN_TIMEOUT_MS: '200',
};

let office: TestService;
let workers: TestService[];
let partner: TestPartner;
let receiver: HoldingReceiver;
let endpoint: RegisteredEndpoint;

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
  const start = () => startTestService({ role: 'worker', database: office.database, env: ENV });
  workers = await Promise.all([start(), start()]);
});
beforeEach(async () => {
  partner = await office.createPartner();
  receiver = await HoldingReceiver.start();
  endpoint = await registerEndpoint(office, partner.id, { url: receiver.url });
});
afterEach(async () => {
  await office.admin.call('DELETE', endpoint.path);
  await receiver.close();
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await office.stop();
});

const record = (count: number): Promise<void> =>
  recordEvents(
    office,
    Array.from({ length: count }, () => ({ partnerId: partner.id })),
  );

/** For each arrival: milliseconds since the first one, and the number of open requests including it. */
function watchArrivals(): { readonly atMs: number; readonly open: number }[] {
  const arrivals: { atMs: number; open: number }[] = [];
  let first = 0;
  receiver.onRequest = () => {
    first ||= performance.now();
    arrivals.push({ atMs: performance.now() - first, open: receiver.open.length });
  };
  return arrivals;
}

/** Expects a start at one, doublings at least a second apart, and no growth beyond the cap. */
function expectSlowStart(arrivals: readonly { readonly atMs: number; readonly open: number }[]): void {
  const tooMany = arrivals.filter(({ atMs, open }) => open > 2 ** (1 + Math.floor((atMs + 20) / 1_000)));
  expect(tooMany).toEqual([]);
  expect(arrivals[0]!.open).toBe(1);
  // No second request before the first response.
  expect(arrivals.filter(({ atMs, open }) => atMs < ANSWER_TAKES_MS - 5 && open > 1)).toEqual([]);
  expect(Math.max(...arrivals.map(({ open }) => open))).toBe(CAP);
}

/** Waits for the end of the slow start, and then holds responses, so that the slots fill even on a slow machine. */
async function wholeConcurrency(): Promise<void> {
  await eventually('the slow start has ended', async () => {
    const { rows } = await office.database.pool.query(
      'SELECT 1 FROM webhook_endpoints WHERE id = $1 AND slow_start_since IS NULL',
      [endpoint.id],
    );
    return rows.length === 1;
  });
  receiver.holdAll();
  await eventually('the whole concurrency', () => receiver.open.length === CAP);
}

describe('slow start across two workers', () => {
  it('starts with one attempt in flight after enabling, and doubles once a second up to the limit', async () => {
    await office.admin.post(`${endpoint.path}/disable`);
    await record(BACKLOG);
    receiver.answerAll(200, ANSWER_TAKES_MS);
    const arrivals = watchArrivals();
    await office.admin.post(`${endpoint.path}/enable`);
    await wholeConcurrency();
    expectSlowStart(arrivals);
  });

  it('also applies after a block', async () => {
    receiver.answerAll(500, 0);
    const clock = new EndpointClock(office.database, endpoint.id);
    await record(1);
    const blocked = await eventually('blocked', async () => {
      const state = await endpointState(office, endpoint);
      return state.status === 'blocked' ? state : null;
    });
    await record(BACKLOG);
    receiver.answerAll(200, ANSWER_TAKES_MS);
    const arrivals = watchArrivals();
    await clock.advanceTo(blocked.blocked_until);
    await wholeConcurrency();
    expectSlowStart(arrivals);
  });

  it('starts at the first timeout, before any block (D42)', async () => {
    await record(30);
    await eventually('the whole concurrency', () => receiver.open.length === CAP);
    await eventually('an attempt after the time-outs', () => receiver.received.length > CAP);
    const sent = receiver.received.length;
    receiver.most = 0;
    await eventually('two more', () => receiver.received.length >= sent + 2);
    expect(receiver.most).toBe(1);
    expect(await endpointState(office, endpoint)).toMatchObject({ status: 'enabled', consecutive_blocks: 0 });
  });
});
