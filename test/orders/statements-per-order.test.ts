import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createTestDatabase,
  eventually,
  leastOf,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { StatementCounter } from '../harness/statement-counter.js';
import { count, OPEN_ORDERS } from '../chaos/books.js';
import { BASE } from '../topups/topup-steps.js';

const BURST = 200;
const MAX_STATEMENTS = 2;
/** On a busy machine jobs may reach a batch one by one, so a burst or two may need more statements. */
const MAX_BURSTS = 5;
/** No sweep, heartbeat or feed poll runs while statements are counted. */
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

/** Statements per job of a worker that starts with `BURST` jobs, until the last one has ended. */
async function statementsPerJob(): Promise<number> {
  statements.reset();
  const worker = await startTestService({ role: 'worker', database, env: ENV });
  await eventually('everything ended', async () => (await count(database, OPEN_ORDERS)) === 0);
  await worker.stop();
  // Statements that run only once or twice do not belong to a job.
  const found = statements.statements.filter(({ count: times }) => times > 2);
  const total = found.reduce((sum, { count: times }) => sum + times, 0);
  console.log(found.map(({ count: times, text }) => `${times} ${text}`).join('\n'));
  console.log(`${total / BURST} statements each`);
  return total / BURST;
}

async function ordersOf(partners: readonly TestPartner[]): Promise<void> {
  const apis = partners.map(({ sandboxKey }) => front.partnerApi(sandboxKey));
  const buy = (_: unknown, nth: number) =>
    placeOrder(apis[nth % apis.length]!, { package_id: BASE, quantity: 2 });
  await Promise.all(Array.from({ length: BURST }, buy));
}

describe(`the worker at a burst of ${BURST}`, () => {
  it(`runs at most ${MAX_STATEMENTS} statements per sandbox order of 25 partners`, async () => {
    const partners = () => Promise.all(Array.from({ length: 25 }, () => office.createPartner()));
    const attempt = async (): Promise<number> => {
      await ordersOf(await partners());
      return statementsPerJob();
    };
    expect(await leastOf(MAX_STATEMENTS, attempt, MAX_BURSTS)).toBeLessThanOrEqual(MAX_STATEMENTS);
  });
});
