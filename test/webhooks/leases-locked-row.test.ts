import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import {
  FAST,
  getDelivery,
  listDeliveries,
  recordEvent,
  registerEndpoint,
  type RegisteredEndpoint,
} from './support.js';

const LEASE_MS = 6_000;
/** Longer than a lease, shorter than the answers take. */
const LOCK_MS = 10_000;
const ANSWER_AFTER_MS = 12_000;
const SETTINGS = {
  ...FAST,
  LEASE_MS: String(LEASE_MS),
  WEBHOOK_TIMEOUT_MS: '20000',
  SHUTDOWN_TIMEOUT_MS: '300',
};

interface SlowEndpoint {
  readonly partner: TestPartner;
  readonly receiver: TestReceiver;
  readonly endpoint: RegisteredEndpoint;
}

let admin: TestService;
let workers: TestService[];
const receivers: TestReceiver[] = [];

beforeEach(async () => {
  admin = await startTestService({ role: 'admin', env: SETTINGS });
  const start = () => startTestService({ role: 'worker', env: SETTINGS, database: admin.database });
  workers = await Promise.all([start(), start()]);
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
  await admin.stop();
});

async function slowEndpoint(): Promise<SlowEndpoint> {
  const receiver = await startReceiver();
  receivers.push(receiver);
  receiver.answer = (_nth, _webhook, response) => {
    setTimeout(() => response.writeHead(200).end(), ANSWER_AFTER_MS);
  };
  const partner = await admin.createPartner();
  return { partner, receiver, endpoint: await registerEndpoint(admin, partner.id, { url: receiver.url }) };
}

async function sendOne({ partner, receiver, endpoint }: SlowEndpoint): Promise<string> {
  await recordEvent(admin, { partnerId: partner.id });
  await eventually('the request', () => receiver.received.length === 1);
  return (await listDeliveries(admin, endpoint))[0]!.id;
}

/** Locks the row of a delivery, as a hand-written statement of an operator would. */
async function withLockedRow(id: string, lockMs: number): Promise<void> {
  const client = await admin.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM webhook_deliveries WHERE id = $1 FOR UPDATE', [id]);
    await client.query('SELECT pg_sleep($1)', [lockMs / 1_000]);
    await client.query('COMMIT');
  } finally {
    client.release();
  }
}

describe('the heartbeat of the leases', () => {
  it('keeps every other lease while somebody has locked the row of one: nothing is sent twice', async () => {
    const [locked, other] = await Promise.all([slowEndpoint(), slowEndpoint()]);
    const [lockedId, otherId] = await Promise.all([sendOne(locked), sendOne(other)]);
    await withLockedRow(lockedId, LOCK_MS);
    await eventually(
      'the other is delivered',
      async () => (await getDelivery(admin, otherId)).status === 'delivered',
    );
    const { attempts } = await getDelivery(admin, otherId);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['delivered']);
    expect(other.receiver.received).toHaveLength(1);
  });
});
