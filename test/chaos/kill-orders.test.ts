import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { size } from '../harness/size.js';
import {
  type BookedEvent,
  type BookedOrder,
  count,
  OPEN_ORDERS,
  OWED,
  readEvents,
  readOrders,
} from './books.js';
import { arrivedAt } from '../webhooks/rotation-signatures.js';
import { Random } from '../../chaos/random.js';
import { Shop } from './shop.js';

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
const ROUNDS = size('ORDER_KILLS', 4, 20);
const LATEST_KILL_MS = 150;
const ENV = {
  LEASE_MS: '1500',
  SWEEP_INTERVAL_MS: '200',
  // A third interruption in a row counts as a failure (D30): its retry should not take half a minute here.
  WEBHOOK_RETRY_DELAYS_MS: '300,300,300,300,300',
};

let database: TestDatabase;
let office: TestService;
let receiver: TestReceiver;
let secret: string;
let api: RoleChild;
let worker: RoleChild;
let shop: Shop;
const random = new Random(SEED);
const kills = { api: 0, worker: 0 };

beforeAll(async () => {
  console.log(`CHAOS_SEED=${SEED}`);
  database = await createTestDatabase();
  office = await startTestService({ role: 'admin', database });
  receiver = await startReceiver();
  // Answers take a while now and then, so that some attempts are under way when the worker dies.
  receiver.answer = (_nth, _webhook, response) =>
    void setTimeout(() => response.writeHead(200).end(), random.chance(0.6) ? random.between(0, 200) : 0);
  const partner = await office.createPartner();
  const endpoint = await office.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    mode: 'sandbox',
    url: receiver.url,
  });
  secret = endpoint.body.data.secret as string;
  [api, worker] = await Promise.all([
    RoleChild.start({ role: 'api', database, env: ENV }),
    RoleChild.start({ role: 'worker', database, env: ENV }),
  ]);
  shop = new Shop(api.partnerApi(partner.sandboxKey));
});

afterAll(async () => {
  await Promise.all([api?.kill(), worker?.kill()]);
  await receiver.close();
  await office.stop();
  await database.drop();
});

function buySomething(): Promise<void>[] {
  return Array.from({ length: random.between(1, 4) }, async () => {
    const packageId = random.pick([
      ...['pkg_fr_1gb_7d', 'pkg_fr_1gb_7d', 'pkg_de_1gb_7d', 'pkg_it_1gb_7d', 'pkg_jp_1gb_7d'],
      ...['pkg_test_timeout', 'pkg_test_partial', 'pkg_test_partial', 'pkg_test_out_of_stock'],
    ]);
    const [quantity, delayMs, repeat] = [random.between(1, 5), random.between(0, 40), random.chance(0.3)];
    await sleep(delayMs);
    await shop.buy(packageId, quantity, repeat);
  });
}

/** Orders, a death at a random moment, and life again. */
async function round(whileDead: () => Promise<unknown>): Promise<void> {
  const victims = random.pick([['worker'], ['worker'], ['api'], ['api', 'worker']] as const);
  // Counted from the sending, the death meets calls under way; counted from the acceptance, the work on them.
  const cutsCalls = random.chance(0.4);
  const killAfterMs = random.between(0, cutsCalls ? 60 : LATEST_KILL_MS);
  const purchases = Promise.all(buySomething().map((purchase) => purchase));
  if (!cutsCalls) await Promise.race([purchases, eventually('a 202', () => shop.accepted.size > sizeBefore)]);
  await sleep(killAfterMs);
  const processes = { api, worker };
  await Promise.all(victims.map((victim) => processes[victim].kill()));
  for (const victim of victims) kills[victim]++;
  await whileDead();
  await Promise.all(victims.map((victim) => processes[victim].restart()));
  await purchases;
  sizeBefore = shop.accepted.size;
}
let sizeBefore = 0;

describe(`${ROUNDS} deaths (CHAOS_SEED=${SEED})`, () => {
  let orders: BookedOrder[];
  let events: BookedEvent[];

  it('ends every order although API and worker are killed again and again, and the queue once lost its jobs', async () => {
    for (let i = 0; i < ROUNDS; i++) {
      await round(async () =>
        i === Math.floor(ROUNDS / 2) ? database.pool.query('TRUNCATE bullmq.job CASCADE') : undefined,
      );
    }
    await eventually('every order ended', async () => (await count(database, OPEN_ORDERS)) === 0);
    await eventually('every delivery ended', async () => (await count(database, OWED)) === 0);
    orders = await readOrders(database);
    events = await readEvents(database);
    const interrupted = await count(database, `webhook_attempts WHERE outcome = 'interrupted'`);
    console.log(
      `${kills.api} API and ${kills.worker} worker deaths, ${orders.length} orders, ${shop.cutCalls} calls cut, ` +
        `${shop.replays} replays, ${receiver.received.length} webhooks for ${events.length} events, ` +
        `${interrupted} attempts interrupted`,
    );
  }, 600_000);

  it('has exactly the orders that were answered with 202', () => {
    const accepted = [...shop.accepted.values()].map(({ orderId }) => orderId);
    expect(orders.map((order) => order.id)).toEqual(accepted.sort());
  });

  it('bought each order exactly once provider, and nothing else', async () => {
    expect(orders.filter((order) => order.purchases !== 1)).toEqual([]);
    expect(await count(database, 'sandbox_upstream_orders')).toBe(orders.length);
  });

  it('issued each order its eSIMs once, and never more than its quantity', async () => {
    const wrong = orders.filter(
      (order) =>
        order.esims !== esimsOf(order) ||
        order.quantity_issued !== order.esims ||
        order.status !== statusOf(order),
    );
    expect(wrong).toEqual([]);
    expect(await count(database, '(SELECT DISTINCT provider_esim_id FROM esims) AS e')).toBe(
      orders.reduce((sum, order) => sum + order.esims, 0),
    );
  });

  it('recorded exactly one event per order, and no event without its order', () => {
    expect(orders.filter((order) => order.events !== 1)).toEqual([]);
    expect(events).toHaveLength(orders.length);
    const types = events.map((event) => (JSON.parse(event.body) as { type: string }).type);
    const failed = orders.filter((order) => order.status === 'failed').length;
    expect(types.filter((type) => type === 'order.failed')).toHaveLength(failed);
    expect(types.filter((type) => type === 'order.issued')).toHaveLength(orders.length - failed);
  });

  it('delivered each event, repeated only with the same event id, delivery id and bytes, and validly signed', () => {
    expect(events.filter((event) => event.delivery_status !== 'delivered')).toEqual([]);
    const sent = new Set(
      receiver.received.map(({ headers, body }) => `${String(headers['x-service-delivery'])} ${body}`),
    );
    expect([...sent].sort()).toEqual(events.map((event) => `${event.delivery_id} ${event.body}`).sort());
    for (const webhook of receiver.received) {
      const { headers, body } = webhook;
      const header = String(headers['x-service-signature']);
      // As of its arrival: the rounds may take longer than a signature is good for.
      const nowSeconds = Math.floor(arrivedAt(webhook) / 1_000);
      expect(verifyWebhookSignature({ header, body, secret, nowSeconds, toleranceSeconds: 300 })).toBe(true);
    }
  });
});

function statusOf(order: BookedOrder): string {
  if (esimsOf(order) === order.quantity) return 'issued';
  return esimsOf(order) === 0 ? 'failed' : 'partially_issued';
}

function esimsOf({ package_id, quantity }: BookedOrder): number {
  if (package_id === 'pkg_test_out_of_stock') return 0;
  return package_id === 'pkg_test_partial' ? Math.ceil(0.6 * quantity) : quantity;
}
