import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { RoleChild } from '../harness/role-child.js';
import { size } from '../harness/size.js';
import { count, OPEN_ORDERS, readEvents, readOrders } from './books.js';
import { Random } from '../../chaos/random.js';

const SEED = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
/** By default one kill per point. The full size cycles through the points. */
const KILLS = size('BATCH_KILLS', 5, 100);
const PARTNERS = 4;
const BATCH = 64;
const LEASE_MS = 1_000;
const ENV = {
  LEASE_MS: String(LEASE_MS),
  SWEEP_INTERVAL_MS: '200',
  PROVISION_CONCURRENCY_PER_PARTNER: '64',
};
const PACKAGES = ['pkg_fr_1gb_7d', 'pkg_test_partial', 'pkg_test_out_of_stock', 'pkg_de_1gb_7d'] as const;

/** The worker dies while PostgreSQL processes a row of this table in a batch statement. */
const POINTS = {
  sandbox_upstream_orders: 'INSERT',
  orders: 'UPDATE OF issued_at, failed_at',
  esims: 'INSERT',
  events: 'INSERT',
  webhook_deliveries: 'INSERT',
} as const;
type Point = keyof typeof POINTS;

const random = new Random(SEED);
let database: TestDatabase;
let front: TestService;
let office: TestService;
let worker: RoleChild | null = null;
let partners: TestPartner[];

beforeAll(async () => {
  console.log(`CHAOS_SEED=${SEED}`);
  database = await createTestDatabase();
  [front, office] = await Promise.all([
    startTestService({ role: 'api', database }),
    startTestService({ role: 'admin', database }),
  ]);
  partners = await Promise.all(Array.from({ length: PARTNERS }, () => office.createPartner()));
  for (const { id } of partners)
    await office.admin.post(`/internal/v1/partners/${id}/webhook-endpoints`, {
      mode: 'sandbox',
      // Nothing listens there, so deliveries stay pending and can be counted.
      url: 'http://127.0.0.1:9/',
    });
  await installPauses();
});

afterAll(async () => {
  await worker?.kill();
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

/** Makes some rows block their statement while their table is listed in `pause_at`. */
async function installPauses(): Promise<void> {
  await database.pool.query(`
    CREATE TABLE pause_at (point text PRIMARY KEY);
    CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF random() < 0.25 THEN
        WHILE EXISTS (SELECT 1 FROM pause_at WHERE point = TG_ARGV[0]) LOOP PERFORM pg_sleep(0.005); END LOOP;
      END IF;
      RETURN NEW;
    END $$`);
  for (const [point, command] of Object.entries(POINTS))
    await database.pool.query(
      `CREATE TRIGGER pause BEFORE ${command} ON ${point} FOR EACH ROW EXECUTE FUNCTION pause('${point}')`,
    );
}

const PAUSED = `pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'
  AND application_name = 'partner-esim-worker'`;

async function placeBatch(): Promise<void> {
  const apis = partners.map(({ sandboxKey }) => front.partnerApi(sandboxKey));
  const orders = Array.from({ length: BATCH }, (_, nth) => ({
    package_id: random.pick(PACKAGES),
    quantity: random.between(1, 3),
    api: apis[nth % PARTNERS]!,
  }));
  await Promise.all(orders.map(({ api, ...body }) => placeOrder(api, body)));
}

/** Places a batch and kills its worker at a row of `point` or a moment later, anywhere after it. */
async function round(point: Point): Promise<void> {
  await placeBatch();
  await database.pool.query('INSERT INTO pause_at VALUES ($1)', [point]);
  if (worker) await worker.restart();
  else worker = await RoleChild.start({ role: 'worker', database, env: ENV });
  await eventually(`a batch is at ${point}`, async () => (await count(database, PAUSED)) > 0);
  const dies = async (): Promise<void> => worker!.kill();
  const goesOn = async (): Promise<unknown> => database.pool.query('DELETE FROM pause_at');
  if (random.chance(0.6)) {
    await dies();
    await goesOn();
  } else {
    await goesOn();
    await sleep(random.between(0, 15));
    await dies();
  }
}

describe(`${KILLS} kills in the middle of batches of ${BATCH} orders (CHAOS_SEED=${SEED})`, () => {
  it('loses and duplicates nothing: each order has one purchase, its eSIMs, one event and one delivery', async () => {
    const points = Object.keys(POINTS) as Point[];
    for (let nth = 0; nth < KILLS; nth++) await round(points[nth % points.length]!);
    await worker!.restart();
    await eventually('every order ended', async () => (await count(database, OPEN_ORDERS)) === 0);
    await worker!.kill();

    const orders = await readOrders(database);
    expect(orders).toHaveLength(KILLS * BATCH);
    expect(orders.filter(({ purchases, events }) => purchases !== 1 || events !== 1)).toEqual([]);
    expect(await count(database, 'sandbox_upstream_orders')).toBe(orders.length);
    const expected = ({ package_id, quantity }: (typeof orders)[number]): number =>
      package_id === 'pkg_test_out_of_stock'
        ? 0
        : package_id === 'pkg_test_partial'
          ? Math.ceil(0.6 * quantity)
          : quantity;
    const wrong = orders.filter(
      (order) =>
        order.esims !== expected(order) ||
        order.quantity_issued !== order.esims ||
        (order.status === 'failed') !== (order.esims === 0),
    );
    expect(wrong).toEqual([]);
    const events = await readEvents(database);
    expect(events).toHaveLength(orders.length);
    expect(new Set(events.map(({ delivery_id }) => delivery_id)).size).toBe(orders.length);
    const { rows } = await database.pool.query<{ size: number }>(
      'SELECT count(*)::int AS size FROM orders GROUP BY xmin::text ORDER BY size DESC',
    );
    const sizes = rows.map(({ size }) => size);
    console.log(`${orders.length} orders in ${sizes.length} transactions, the largest of ${sizes[0]} orders`);
    // Otherwise the kills did not hit batches.
    expect(sizes[0]).toBeGreaterThan(8);
  }, 600_000);
});
