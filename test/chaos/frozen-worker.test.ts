import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startReceiver,
  startTestService,
  type TestDatabase,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { RoleChild } from '../harness/role-child.js';
import { count, OPEN_ORDERS, OWED, readEvents, readOrders } from './books.js';
import { Random } from '../../chaos/random.js';

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
const ROUNDS = 6;
const ORDERS_PER_ROUND = 8;
const LEASE_MS = 700;
const ENV = {
  LEASE_MS: String(LEASE_MS),
  SWEEP_INTERVAL_MS: '100',
  WEBHOOK_RETRY_DELAYS_MS: '300,300,300,300,300',
};

const random = new Random(SEED);
let database: TestDatabase;
let front: TestService;
let office: TestService;
let receiver: TestReceiver;
let frozen: RoleChild;
let awake: RoleChild;

beforeAll(async () => {
  database = await createTestDatabase();
  [front, office] = await Promise.all([
    startTestService({ role: 'api', database }),
    startTestService({ role: 'admin', database }),
  ]);
  receiver = await startReceiver();
  receiver.answer = (_nth, _webhook, response) => void setTimeout(() => response.writeHead(200).end(), 30);
  [frozen, awake] = await Promise.all([
    RoleChild.start({ role: 'worker', database, env: ENV }),
    RoleChild.start({ role: 'worker', database, env: ENV }),
  ]);
});

afterAll(async () => {
  frozen?.thaw();
  await Promise.all([frozen?.kill(), awake?.kill()]);
  await receiver.close();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

/** Orders that another worker could end now: those whose rows the frozen one has not locked. */
const FREE_ORDERS = `(SELECT 1 FROM ${OPEN_ORDERS} FOR UPDATE SKIP LOCKED) AS o`;

describe(`a worker that freezes in its work and wakes up after its lease (CHAOS_SEED=${SEED})`, () => {
  it('writes nothing any more: every order ends once, with one event, delivered under one id', async () => {
    const partner = await office.createPartner();
    const api = front.partnerApi(partner.sandboxKey);
    await office.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
      mode: 'sandbox',
      url: receiver.url,
    });
    for (let round = 0; round < ROUNDS; round++) {
      // A late writer would give an order of the first kind a second event; eSIMs have a constraint besides.
      const packages = ['pkg_test_out_of_stock', 'pkg_fr_1gb_7d'];
      const orders = Array.from({ length: ORDERS_PER_ROUND }, (_, i) => ({
        package_id: packages[i % 2],
        quantity: 2,
      }));
      await Promise.all(orders.map((order) => placeOrder(api, order)));
      await sleep(random.between(0, 40));
      frozen.freeze();
      await eventually(
        'the other worker ended what it could',
        async () => (await count(database, FREE_ORDERS)) === 0,
      );
      await sleep(LEASE_MS);
      frozen.thaw();
      await eventually('every order ended', async () => (await count(database, OPEN_ORDERS)) === 0);
    }
    await eventually('every delivery ended', async () => (await count(database, OWED)) === 0);

    const orders = await readOrders(database);
    expect(orders).toHaveLength(ROUNDS * ORDERS_PER_ROUND);
    expect(orders.filter(({ events, purchases }) => events !== 1 || purchases !== 1)).toEqual([]);
    expect(orders.filter(({ esims, status }) => esims !== (status === 'issued' ? 2 : 0))).toEqual([]);
    const events = await readEvents(database);
    const sent = new Set(
      receiver.received.map(({ headers, body }) => `${String(headers['x-service-delivery'])} ${body}`),
    );
    expect([...sent].sort()).toEqual(events.map((event) => `${event.delivery_id} ${event.body}`).sort());
    console.log(`${orders.length} orders, ${receiver.received.length} webhooks for ${events.length} events`);
  });
});
