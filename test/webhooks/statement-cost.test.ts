import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { DeliveriesRepository } from '../../src/webhooks/worker/deliveries.repository.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';
import { endpointState, recordEvent, recordEvents, registerEndpoint } from './support.js';

const EVENTS = 60;
const ORDERS = 5;

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;

beforeAll(async () => {
  // No sweep runs during the test, so only the events' own statements are counted.
  service = await startTestService({ env: { LEASE_MS: '60000', SWEEP_INTERVAL_MS: '60000' } });
  partner = await service.createPartner();
  receiver = await startReceiver();
  await registerEndpoint(service, partner.id, { url: receiver.url });
  await recordEvent(service, { partnerId: partner.id });
  await settled(1);
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

/** Waits until this many are sent and their outcomes are committed. */
async function settled(count: number): Promise<void> {
  await eventually('they are sent', () => receiver.received.length === count);
  await eventually('they are recorded', async () => {
    const { rows } = await service.database.pool.query(
      `SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'discarding')`,
    );
    return rows.length === 0;
  });
}

const KINDS = {
  recorded: /INSERT INTO events\b/,
  owed: /INSERT INTO webhook_deliveries\b(?=[^]*FOR KEY SHARE)|FOR KEY SHARE OF w/,
  begun: /^START TRANSACTION/,
  claims: /SET started_at = statement_timestamp\(\)/,
  outcomes: /INSERT INTO webhook_attempts/,
  // Other code in the process locks keys, orders and top-ups in the same way.
  lockedEndpoints: /FROM webhook_endpoints\b[^;]*FOR NO KEY UPDATE/,
  bodyReads: /SELECT id, body FROM events_/,
  // Only signals with work. Worker processes also announce themselves.
  signals: /pg_notify\(.*"due":/s,
  jobs: /add_job/,
  leases: /INSERT INTO webhook_endpoint_leases/,
} as const;

/** The number of statements of each kind that this process sends during `work`. */
async function statementsOf(work: () => Promise<unknown>): Promise<Record<keyof typeof KINDS, number>> {
  const sent = vi.spyOn(Client.prototype, 'query');
  // A second spy is the first one, with its earlier calls.
  sent.mockClear();
  await work();
  const texts = sent.mock.calls.map((given: readonly unknown[]) => {
    const [statement, values] = given as [string | { text?: string; values?: unknown[] }, unknown];
    const { text, values: own } = typeof statement === 'string' ? { text: statement, values } : statement;
    return `${text} ${Array.isArray(own ?? values) ? String(own ?? values) : ''}`;
  });
  const count = (kind: RegExp): number => texts.filter((text) => kind.test(text)).length;
  return Object.fromEntries(Object.entries(KINDS).map(([name, kind]) => [name, count(kind)])) as never;
}

it('runs two statements to record an event, one to claim, one to read and at most one to end it, without a job', async () => {
  const before = receiver.received.length;
  const counts = await statementsOf(async () => {
    for (let nth = 1; nth <= EVENTS; nth++) {
      await recordEvent(service, { partnerId: partner.id });
      await settled(before + nth);
    }
  });
  expect(counts).toMatchObject({ recorded: EVENTS, owed: EVENTS, lockedEndpoints: 0, signals: 0, jobs: 0 });
  expect(counts.bodyReads).toBeLessThanOrEqual(EVENTS);
  // The claim for one event may find nothing because the previous claim took it.
  expect(counts.claims).toBeGreaterThan(0);
  expect(counts.claims).toBeLessThanOrEqual(EVENTS * 1.2);
  expect(counts.outcomes).toBeLessThanOrEqual(EVENTS);
  // Only the transaction that records the event, because a claim is a single statement.
  expect(counts.begun).toBeLessThanOrEqual(EVENTS * 1.2);
});

it('runs two statements to record the events of one transaction and few to send them, however many there are', async () => {
  const before = receiver.received.length;
  const counts = await statementsOf(async () => {
    await recordEvents(
      service,
      Array.from({ length: EVENTS }, () => ({ partnerId: partner.id })),
    );
    await settled(before + EVENTS);
  });
  expect(counts).toMatchObject({ recorded: 1, owed: 1, lockedEndpoints: 0, signals: 0, jobs: 0 });
  expect(counts.claims + counts.outcomes).toBeLessThan(EVENTS);
});

it("sends an order's event without a claim if the worker that recorded it owns the endpoint", async () => {
  const before = receiver.received.length;
  const counts = await statementsOf(async () => {
    for (let nth = 1; nth <= ORDERS; nth++) {
      await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
      await settled(before + nth);
    }
  });
  expect(counts).toMatchObject({ owed: ORDERS, claims: 0, bodyReads: 0, signals: 0, jobs: 0 });
});

it('checks a blocked endpoint with a backlog in the sweep, without a claim, job or write (D31)', async () => {
  const blockable = await startTestService({
    env: { SWEEP_INTERVAL_MS: '100', WEBHOOK_RETRY_DELAYS_MS: '1', WEBHOOK_BLOCK_MS: '600000' },
  });
  const refusing = await startReceiver();
  refusing.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
  try {
    const { id: partnerId } = await blockable.createPartner();
    const endpoint = await registerEndpoint(blockable, partnerId, { url: refusing.url });
    await recordEvent(blockable, { partnerId });
    await eventually('blocked', async () => (await endpointState(blockable, endpoint)).status === 'blocked');
    const looks = vi.spyOn(DeliveriesRepository.prototype, 'listEndpointsDue').mock.calls;
    const backlog = Array.from({ length: 200 }, () => ({ partnerId }));
    await recordEvents(blockable, backlog);
    const sent = refusing.received.length;
    const unused = ['claims', 'leases', 'outcomes', 'bodyReads', 'lockedEndpoints', 'jobs'] as const;
    // Work that the recording triggered may still run during the first sweeps.
    await eventually('ten sweeps that only look', async () => {
      const before = looks.length;
      const counts = await statementsOf(() => eventually('ten sweeps', () => looks.length >= before + 10));
      return unused.every((name) => counts[name] === 0);
    });
    expect(refusing.received).toHaveLength(sent);
  } finally {
    await blockable.stop();
    await refusing.close();
  }
});
