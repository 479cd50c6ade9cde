import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idFloor, ulid } from '../../src/common/ids.js';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { ownSweepsHaveRun } from '../harness/own-sweeps.js';
import { maintainDays, makeDays } from '../retention/purge-by-hand.js';
import { FAST, getDelivery, type RegisteredEndpoint, registerEndpoint } from './support.js';

/** One beyond the 30 days of Sandbox, one within, and both within one step. */
const [PAST, KEPT] = [31, 20];

let admin: TestService;
let worker: TestService;
let receiver: TestReceiver;
let partnerId: string;

beforeAll(async () => {
  // The admin role drops no partitions, so the tests decide when.
  admin = await startTestService({ role: 'admin', env: FAST });
  await makeDays(admin, [KEPT]);
  worker = await startTestService({ role: 'worker', database: admin.database, env: FAST });
  receiver = await startReceiver();
  const partner = await admin.admin.post('/internal/v1/partners', { name: 'Late' });
  partnerId = partner.body.data.id as string;
  // A later sweep would drop the partitions that a test creates.
  await ownSweepsHaveRun(worker, 'database.partitions');
});
afterAll(async () => {
  await worker.stop();
  await admin.stop();
  await receiver.close();
});

const query = (text: string, values: unknown[] = []) => admin.database.pool.query(text, values);
/** One hour into the day that was `age` days ago. */
const hourOf = (age: number): Date => new Date(dayOf(new Date(), -age).getTime() + 3_600_000);

async function insertEvent(age: number): Promise<string> {
  const id = `${idFloor('evt', hourOf(age))}${ulid().slice(10)}`;
  await query(
    `INSERT INTO events (id, partner_id, mode, type, body, created_at)
     VALUES ($1, $2, 'sandbox', 'esim.activated', $3, $4)`,
    [id, partnerId, JSON.stringify({ id }), hourOf(age)],
  );
  return id;
}

async function insertDelivered(
  endpoint: RegisteredEndpoint,
  eventId: string,
  age: number,
  ended = age,
): Promise<void> {
  await query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, created_at,
                                     delivered_at, ended_at)
     VALUES ($1, $2, $3, 'sandbox', $4, 'esim.activated', 'event', 'delivered', $5, $6, $6)`,
    [`dlv_${ulid(hourOf(age).getTime())}`, endpoint.id, partnerId, eventId, hourOf(age), hourOf(ended)],
  );
}

const sentEventIds = (): string[] =>
  receiver.received.map(({ body }) => (JSON.parse(body.toString()) as { id: string }).id).toSorted();

describe('a replay that waited while some of its partitions were dropped', () => {
  it('repeats the rest, and its total and created counts show how many deliveries were already dropped', async () => {
    const endpoint = await registerEndpoint(admin, partnerId, { url: receiver.url });
    await makeDays(admin, [PAST]);
    const kept = [await insertEvent(KEPT), await insertEvent(KEPT)].toSorted();
    for (const event of kept) await insertDelivered(endpoint, event, KEPT);
    // One delivery is dropped with its event. The other ended late and outlives its event.
    await insertDelivered(endpoint, await insertEvent(PAST), PAST);
    await insertDelivered(endpoint, await insertEvent(PAST), PAST, KEPT);
    await admin.admin.post(`${endpoint.path}/disable`, {});
    const started = await admin.admin.post(`${endpoint.path}/replay`, {
      since: hourOf(PAST + 1).toISOString(),
    });
    expect(started.body.data).toMatchObject({ status: 'running', total: 4, created: 0 });
    expect(await maintainDays(admin)).toHaveLength(1);

    await admin.admin.post(`${endpoint.path}/enable`, {});
    const path = `/internal/v1/replays/${started.body.data.id as string}`;
    const ended = await eventually('the replay is completed', async () => {
      const { data } = (await admin.admin.get(path)).body;
      return data.status === 'completed' && data;
    });
    expect(ended).toMatchObject({ total: 4, created: 2, delivered: 2, failed: 0, pending: 0, discarded: 0 });
    expect(sentEventIds()).toEqual(kept);
  });
});

describe("a resend during the detachment of its event's partition", () => {
  /** Inserts a resend that committed between the last check for open deliveries and the detachment. */
  async function insertResend(endpoint: RegisteredEndpoint, eventId: string): Promise<string> {
    const id = `dlv_${ulid()}`;
    await query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, next_attempt_at)
       VALUES ($1, $2, $3, 'sandbox', $4, 'esim.activated', 'resend', 'pending', now())`,
      [id, endpoint.id, partnerId, eventId],
    );
    return id;
  }

  const ended = (id: string): Promise<string> =>
    eventually('the resend has ended', async () => {
      const { status } = await getDelivery(admin, id);
      return status !== 'pending' && status;
    });

  it('is sent from the detached partition, and discarded only once that partition is dropped', async () => {
    const endpoint = await registerEndpoint(admin, partnerId, { url: receiver.url });
    const event = await insertEvent(KEPT);
    const day = partitionName('events_sandbox', dayOf(hourOf(KEPT)));
    await query(`ALTER TABLE events_sandbox DETACH PARTITION ${day}`);
    const sent = receiver.received.length;
    expect(await ended(await insertResend(endpoint, event))).toBe('delivered');
    expect(receiver.received.slice(sent).map(({ body }) => body.toString())).toEqual([
      JSON.stringify({ id: event }),
    ]);
    await query(`DROP TABLE ${day}`);
    expect(await ended(await insertResend(endpoint, event))).toBe('discarded');
  });
});
