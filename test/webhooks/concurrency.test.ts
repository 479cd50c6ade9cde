import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { HoldingReceiver } from './holding-receiver.js';
import { recordEvents, registerEndpoint, type RegisteredEndpoint } from './support.js';

const CAP = 4;
const ENV = {
  // A hanging attempt lasts longer than its test.
  WEBHOOK_TIMEOUT_MS: '600000',
  WEBHOOK_CONCURRENCY_PER_ENDPOINT: String(CAP),
  WEBHOOK_RETRY_DELAYS_MS: '1',
  SWEEP_INTERVAL_MS: '100',
  SHUTDOWN_TIMEOUT_MS: '200',
  // With a short lease, the other worker would take over a stalled one's endpoint and send again.
  LEASE_MS: '60000',
};

let office: TestService;
let workers: TestService[];
let partner: TestPartner;
let receiver: TestReceiver;

beforeAll(async () => {
  office = await startTestService({ role: 'admin' });
  const start = () => startTestService({ role: 'worker', database: office.database, env: ENV });
  workers = await Promise.all([start(), start()]);
});
beforeEach(async () => {
  partner = await office.createPartner();
  receiver = await startReceiver();
});
afterEach(() => receiver.close());
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await office.stop();
});

const record = (count: number, partnerId = partner.id): Promise<void> =>
  recordEvents(
    office,
    Array.from({ length: count }, () => ({ partnerId })),
  );

/**
 * Waits until new events of another partner are delivered, which shows that both workers have handled earlier due ones.
 */
async function laterOneIsDelivered(): Promise<void> {
  for (let nth = 0; nth < 2 * workers.length; nth++) {
    const { id } = await office.createPartner();
    await registerEndpoint(office, id, { url: receiver.url });
    const before = receiver.received.length;
    await record(1, id);
    await eventually('a later one is delivered', () => receiver.received.length > before);
  }
}

describe(`an endpoint with two workers and a limit of ${CAP} attempts in flight`, () => {
  let holding: HoldingReceiver;
  let endpoint: RegisteredEndpoint;

  beforeEach(async () => {
    holding = await HoldingReceiver.start();
    endpoint = await registerEndpoint(office, partner.id, { url: holding.url });
  });
  afterEach(async () => {
    await office.admin.call('DELETE', endpoint.path);
    await holding.close();
  });

  async function countOf(status: string): Promise<number> {
    const { rows } = await office.database.pool.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM webhook_deliveries WHERE endpoint_id = $1 AND status = $2',
      [endpoint.id, status],
    );
    return rows[0]!.n;
  }

  const fullEndpoint = () => eventually('a full endpoint', () => holding.open.length === CAP);

  async function expectNoMore(): Promise<void> {
    await laterOneIsDelivered();
    expect(holding.most).toBe(CAP);
  }

  it('uses the whole limit and never exceeds it, while it hangs and while it responds', async () => {
    await record(60);
    await fullEndpoint();
    await expectNoMore();
    holding.answerAll(200, 20);
    await eventually('all delivered', async () => (await countOf('delivered')) === 60);
    expect(holding.most).toBe(CAP);
    expect(holding.received).toHaveLength(60);
  });

  it('stays within the limit when older failed deliveries are resent alongside hanging ones (D32)', async () => {
    // The deliveries fail before any worker sees them, so the test needs no outage.
    const events = Array.from({ length: CAP * 20 }, () => ({ partnerId: partner.id }));
    await recordEvents(office, events, async ({ manager }) => {
      await manager.query(
        `UPDATE webhook_deliveries SET status = 'failed', failed_at = now(), ended_at = now(), next_attempt_at = NULL
         WHERE endpoint_id = $1`,
        [endpoint.id],
      );
    });
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

  it('stays within the limit when hanging deliveries are discarded, because their attempts still run (D32)', async () => {
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

describe('a hanging endpoint', () => {
  it('does not delay another endpoint at the same origin', async () => {
    const quick = await office.createPartner();
    receiver.answer = (_nth, webhook, response) => {
      if (!webhook.body.includes('"iccid":"hang"')) response.writeHead(200).end();
    };
    for (let i = 0; i < 5; i++) await registerEndpoint(office, partner.id, { url: receiver.url });
    await registerEndpoint(office, quick.id, { url: receiver.url });
    const hanging = Array.from({ length: 40 }, () => ({ partnerId: partner.id, iccid: 'hang' }));
    await recordEvents(office, hanging);
    await eventually('five full endpoints', () => receiver.received.length === 5 * CAP);
    const before = receiver.received.length;
    const startedAt = performance.now();
    await record(100, quick.id);
    await eventually('the quick ones', () => receiver.received.length === before + 100);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});
