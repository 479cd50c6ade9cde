import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { size } from '../harness/size.js';
import { OwnPostgres } from './own-postgres.js';
import { Random } from '../../chaos/random.js';
import { type EndpointBooks, inFlight, isBalanced, readDeliveries, readEquation } from './storm-books.js';
import { EventSource } from './storm-events.js';
import { type Behaviour, StormReceiver } from './storm-receivers.js';

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
/** Each partner has a good endpoint for all of its events and a troubled one for a tenth of them. */
const TROUBLES: readonly Behaviour[] = ['slow', 'failing', 'hanging', 'resetting', 'flapping'];
const PARTNERS = size('STORM_PARTNERS', 2 * TROUBLES.length, 2 * TROUBLES.length);
/** Attempts of one endpoint at once, over all workers (D34). */
const MOST_OPEN = 16;
const EVENTS_PER_PARTNER = size('STORM_EVENTS', 400, 2_000);
const BATCH = 100;
const KILLS = size('STORM_KILLS', 6, 9);
const KILL_EVERY_MS = { min: 1_000, max: 3_000 };
/** After which kills something else happens as well. */
const DATABASE_RESTARTS = [2, 5];
const QUEUE_LOSS = 3;
const DATABASE_DOWN_MS = 500;
const ENV = {
  // A living worker that has no core for seconds must not lose what it has in hand: the last test counts deaths alone.
  LEASE_MS: '20000',
  SWEEP_INTERVAL_MS: '250',
  WEBHOOK_TIMEOUT_MS: '1000',
  WEBHOOK_RETRY_DELAYS_MS: '100,100,200,200,300',
  WEBHOOK_BLOCK_MS: '500',
};

const random = new Random(SEED);
let postgres: OwnPostgres;
let office: TestService;
let source: EventSource;
let workers: RoleChild[] = [];
const receivers = new Map<string, StormReceiver>();
const paths = new Map<string, string>();
const partners: string[] = [];
/** Attempts under way when something died: each of them may arrive a second time, and nothing else may. */
const cut = { byKills: 0, byRestarts: 0 };
let checks = 0;

beforeAll(async () => {
  console.log(`CHAOS_SEED=${SEED}`);
  postgres = await OwnPostgres.start();
  const { database } = postgres;
  office = await startTestService({ role: 'admin', database });
  source = new EventSource(office);
  for (let i = 0; i < PARTNERS; i++) {
    const { id } = await office.createPartner();
    partners.push(id);
    await register(id, 'good');
    await register(id, TROUBLES[i % TROUBLES.length]!, ['esim.expired']);
  }
  const start = () => RoleChild.start({ role: 'worker', database, env: ENV });
  workers = await Promise.all([start(), start()]);
});

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await Promise.all([...receivers.values()].map((receiver) => receiver.close()));
  await office?.stop();
  await postgres?.remove();
});

async function register(partnerId: string, behaviour: Behaviour, event_types?: string[]): Promise<void> {
  const receiver = await StormReceiver.start(behaviour);
  const collection = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const fields = { mode: 'sandbox', url: receiver.url, ...(event_types ? { event_types } : {}) };
  const { body } = await office.admin.post(collection, fields);
  receiver.secret = body.data.secret as string;
  receivers.set(body.data.id as string, receiver);
  paths.set(body.data.id as string, `${collection}/${body.data.id}`);
}

async function recordEverything(): Promise<void> {
  for (let batch = 0; batch < EVENTS_PER_PARTNER / BATCH; batch++) {
    for (const partnerId of partners) await source.recordBatch(partnerId, BATCH);
  }
}

async function killAndRestart(): Promise<void> {
  const victim = random.pick(workers);
  const { pid } = victim;
  await victim.kill();
  // Statements of the dead that PostgreSQL still had in hand end first.
  await sleep(50);
  cut.byKills += await inFlight(postgres.database, pid);
  await victim.restart();
}

async function restartDatabase(): Promise<void> {
  const before = await inFlight(postgres.database);
  await postgres.restart(DATABASE_DOWN_MS);
  cut.byRestarts += Math.max(before, await inFlight(postgres.database));
}

async function expectBalance(): Promise<readonly EndpointBooks[]> {
  const books = await readEquation(postgres.database);
  expect(books.filter((endpoint) => !isBalanced(endpoint))).toEqual([]);
  checks++;
  return books;
}

async function storm(): Promise<void> {
  for (let kill = 1; kill <= KILLS; kill++) {
    await sleep(random.between(KILL_EVERY_MS.min, KILL_EVERY_MS.max));
    if (DATABASE_RESTARTS.includes(kill)) await restartDatabase();
    if (kill === QUEUE_LOSS) await postgres.database.pool.query('TRUNCATE bullmq.job CASCADE');
    await killAndRestart();
    await expectBalance();
  }
}

/** Everybody is well again; whoever was disabled is enabled, and gets what was held. */
async function calmDown(): Promise<void> {
  for (const receiver of receivers.values()) receiver.calmDown();
  for (const { id, status } of await readEquation(postgres.database)) {
    if (status === 'disabled') await office.admin.post(`${paths.get(id)}/enable`);
  }
}

/** A receiver that comes back may be disabled by what was in flight before: it is enabled again. */
async function everythingEnded(): Promise<readonly EndpointBooks[]> {
  return eventually('nothing is owed', async () => {
    const books = await expectBalance();
    if (books.some(({ status }) => status === 'disabled')) await calmDown();
    await sleep(250);
    return books.every(({ pending, held }) => pending + held === 0) ? books : null;
  });
}

describe(`a storm over ${2 * PARTNERS} endpoints (CHAOS_SEED=${SEED})`, () => {
  let books: readonly EndpointBooks[];
  let disabledByStorm = 0;

  it(`of ${KILLS} deaths, two database restarts and a lost queue ends with nothing owed, always in balance`, async () => {
    const startedAt = performance.now();
    const recording = recordEverything();
    await Promise.all([recording, storm()]);
    const stormS = (performance.now() - startedAt) / 1_000;
    disabledByStorm = (await readEquation(postgres.database)).filter((b) => b.status === 'disabled').length;
    await calmDown();
    books = await everythingEnded();
    const totalS = (performance.now() - startedAt) / 1_000;
    console.log(
      `storm ${stormS.toFixed(0)} s, ended after ${totalS.toFixed(0)} s, ${checks} balances checked`,
    );
  }, 600_000);

  it('lost no event: each was delivered to every good endpoint of its partner, and each accepted one exists', async () => {
    const { rows } = await postgres.database.pool.query<{ id: string; partner_id: string; iccid: string }>(
      `SELECT id, partner_id, body::jsonb -> 'data' ->> 'iccid' AS iccid FROM events`,
    );
    const recorded = new Set(rows.map((row) => row.iccid));
    expect([...source.accepted].filter((iccid) => !recorded.has(iccid))).toEqual([]);
    expect(source.accepted.size).toBe(PARTNERS * EVENTS_PER_PARTNER);
    let lost = 0;
    for (const [partner, good] of goodReceivers()) {
      lost += rows.filter((row) => row.partner_id === partner && !good.byEvent.has(row.id)).length;
    }
    const pairs = books.reduce((sum, { events }) => sum + events, 0);
    console.log(`${rows.length} events, ${pairs} (event, endpoint) pairs, lost ${lost}`);
    expect(lost).toBe(0);
    expect(pairs).toBeGreaterThanOrEqual(PARTNERS * EVENTS_PER_PARTNER);
  });

  it('sent nothing twice but what was in flight at a death, and logged every request', async () => {
    const deliveries = await readDeliveries(postgres.database);
    const unlogged = deliveries.filter(
      ({ id, endpoint_id, attempts }) => (receivers.get(endpoint_id)!.byDelivery.get(id) ?? 0) > attempts,
    );
    expect(unlogged).toEqual([]);
    const good = [...goodReceivers().values()];
    const duplicates = good.reduce((sum, receiver) => sum + receiver.duplicates, 0);
    // A good receiver that this busy process lets answer too late gets it again, as it must.
    const late = deliveries.reduce(
      (sum, { endpoint_id, failed }) => sum + (good.includes(receivers.get(endpoint_id)!) ? failed : 0),
      0,
    );
    const all = [...receivers.values()];
    const requests = all.reduce((sum, receiver) => sum + receiver.total, 0);
    const interrupted = deliveries.reduce((sum, delivery) => sum + delivery.interrupted, 0);
    console.log(
      `${requests} requests, ${interrupted} attempts interrupted, ${duplicates} duplicates at good endpoints, ${late} ` +
        `answered by them too late; in flight ` +
        `at ${KILLS} kills ${cut.byKills}, at ${DATABASE_RESTARTS.length} database restarts ${cut.byRestarts}; ` +
        `${disabledByStorm} endpoints disabled by the storm`,
    );
    expect(duplicates).toBeLessThanOrEqual(interrupted + late);
    expect(interrupted).toBeLessThanOrEqual(cut.byKills + cut.byRestarts);
    expect(all.reduce((sum, receiver) => sum + receiver.badSignatures, 0)).toBe(0);
    expect(Math.max(...all.map(({ mostOpen }) => mostOpen))).toBeLessThanOrEqual(MOST_OPEN);
  });

  it('delivered or gave up every event of the troubled endpoints: none is silently gone', async () => {
    const delivered = (await readDeliveries(postgres.database)).filter(
      ({ status }) => status === 'delivered',
    );
    const unseen = delivered.filter((d) => !receivers.get(d.endpoint_id)!.byEvent.has(d.event_id));
    expect(unseen).toEqual([]);
    expect(books.filter(({ discarded }) => discarded > 0)).toEqual([]);
    console.log(
      books
        .map(
          ({ id, ...b }) =>
            `${receivers.get(id)!.behaviour}: ${b.events} = ${b.delivered} + ${b.failed} failed`,
        )
        .filter((line) => !line.startsWith('good'))
        .join('; '),
    );
  });
});

/** The good receiver of each partner. */
function goodReceivers(): Map<string, StormReceiver> {
  const found = [...receivers].filter(([, receiver]) => receiver.behaviour === 'good');
  return new Map(found.map(([id, receiver]) => [/partners\/([^/]+)/.exec(paths.get(id)!)![1]!, receiver]));
}
