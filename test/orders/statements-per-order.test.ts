import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { StatementCounter } from '../harness/statement-counter.js';
import { count, OPEN_ORDERS } from '../chaos/books.js';

const BURST = 200;
/** No sweep, no heartbeat and no feed of its own begins while orders are counted. */
const ENV = { SWEEP_INTERVAL_MS: '60000', LEASE_MS: '120000' };

let database: TestDatabase;
let front: TestService;
let office: TestService;
let statements: StatementCounter;

beforeAll(async () => {
  database = await createTestDatabase();
  [front, office] = await Promise.all([
    startTestService({ role: 'api', database }),
    startTestService({ role: 'admin', database }),
  ]);
});

afterAll(async () => {
  await Promise.all([front.stop(), office.stop()]);
  await database.drop();
});

beforeEach(() => {
  statements = new StatementCounter('partner-esim-worker');
});

afterEach(() => statements.stop());

/** Statements of a worker that finds `BURST` orders waiting, until the last one has ended. */
async function statementsPerOrder(partners: readonly TestPartner[]): Promise<number> {
  const apis = partners.map(({ sandboxKey }) => front.partnerApi(sandboxKey));
  const buy = (_: unknown, nth: number) =>
    placeOrder(apis[nth % apis.length]!, { package_id: 'pkg_fr_1gb_7d', quantity: 2 });
  await Promise.all(Array.from({ length: BURST }, buy));
  const worker = await startTestService({ role: 'worker', database, env: ENV });
  await eventually('every order ended', async () => (await count(database, OPEN_ORDERS)) === 0);
  await worker.stop();
  const found = statements.statements.filter(({ count: times }) => times > 2);
  console.log(found.map(({ count: times, text }) => `${times} ${text}`).join('\n'));
  const total = found.reduce((sum, { count: times }) => sum + times, 0);
  console.log(`${partners.length} partners: ${total / BURST} statements per order`);
  return total / BURST;
}

describe(`the worker at a burst of ${BURST} sandbox orders`, () => {
  it('needs at most 2 statements for an order of one partner', async () => {
    expect(await statementsPerOrder([await office.createPartner()])).toBeLessThanOrEqual(2);
  });

  it('needs no more when the orders are of 25 partners', async () => {
    const partners = await Promise.all(Array.from({ length: 25 }, () => office.createPartner()));
    expect(await statementsPerOrder(partners)).toBeLessThanOrEqual(2);
  });
});
