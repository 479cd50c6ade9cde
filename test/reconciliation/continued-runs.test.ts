import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, eventually, startTestService, type TestDatabase } from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { CountingWholesaler } from './counting-wholesaler.js';
import { insertOrders, ONE_WRONG_OF } from './many-orders.js';

const ORDERS = 200;
const PAGE_SIZE = 20;
const LEASE_MS = 4_000;
/** Long enough for a worker to keep its lease on a busy machine. */
const LONG_LEASE_MS = 8_000;
/** In the middle of the sixth page, when five pages are stored. */
const INTERRUPTED_AT = 5 * PAGE_SIZE + 10;
const PART = 'provider:zendit:order';

interface RunRow {
  id: string;
  status: string;
  fence: string;
  differences: number;
  unanswered: number;
}

let database: TestDatabase;
let wholesaler: CountingWholesaler;
let workers: RoleChild[];

beforeEach(async () => {
  database = await createTestDatabase();
  wholesaler = await CountingWholesaler.open();
  workers = [];
  await insertOrders(database, ORDERS);
});

afterEach(async () => {
  for (const worker of workers) await worker.kill();
  await wholesaler.close();
  await database.drop();
});

function envWith(leaseMs: number): Record<string, string> {
  const settings = { RECONCILE_INTERVAL_MS: '1000', RECONCILE_PAGE_SIZE: String(PAGE_SIZE) };
  return { ...wholesaler.env, ...settings, LEASE_MS: String(leaseMs) };
}

async function startWorker(): Promise<RoleChild> {
  const worker = await RoleChild.start({ role: 'worker', database, env: envWith(LEASE_MS) });
  workers.push(worker);
  return worker;
}

async function firstRun(): Promise<RunRow | null> {
  const { rows } = await database.pool.query<RunRow>('SELECT * FROM reconciliation_runs ORDER BY id LIMIT 1');
  return rows[0] ?? null;
}

/** Prevents a second run, which would repeat the queries. */
const allowOneRun = () => database.pool.query('CREATE UNIQUE INDEX ON reconciliation_runs ((true))');

function completed(): Promise<RunRow> {
  return eventually('the first run is completed', async () => {
    const run = await firstRun();
    return run?.status === 'completed' ? run : null;
  });
}

/** Orders with differences in the run, once per difference. */
async function ordersWithDifferences({ id }: RunRow): Promise<string[]> {
  const { rows } = await database.pool.query<{ reference: string }>(
    `SELECT subject ->> 'reference' AS reference FROM reconciliation_differences WHERE run_id = $1 ORDER BY 1`,
    [id],
  );
  return rows.map(({ reference }) => reference);
}

const wrongOrders = Array.from(
  { length: ORDERS / ONE_WRONG_OF },
  (_, nth) => `many-${(nth + 1) * ONE_WRONG_OF}`,
).sort();

/** Runs `interrupt` once after this many queries. Queries made meanwhile wait. */
function interruptAt(questions: number, interrupt: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let interruption: Promise<void> | null = null;
    wholesaler.beforeAnswer = (asked) => {
      if (asked < questions) return;
      interruption ??= interrupt().then(resolve, reject);
      return interruption;
    };
  });
}

describe('a reconciliation run whose worker dies', () => {
  it('is continued by another worker at its cursor, queries only the rest, and stores each difference once', async () => {
    await allowOneRun();
    const dying = await startWorker();
    await interruptAt(INTERRUPTED_AT, () => dying.kill());
    const { rows } = await database.pool.query<{ rows_read: string; cursor: string }>(
      'SELECT rows_read, cursor FROM reconciliation_cursors WHERE part = $1',
      [PART],
    );
    expect(Number(rows[0]!.rows_read)).toBe(5 * PAGE_SIZE);
    await startWorker();
    const run = await completed();
    expect(run).toMatchObject({ fence: '2', differences: wrongOrders.length, unanswered: 0 });
    expect(await ordersWithDifferences(run)).toEqual(wrongOrders);
    const again = [...wholesaler.asked].filter(([, times]) => times > 1).map(([reference]) => reference);
    expect(wholesaler.asked.size).toBe(ORDERS);
    // Only the interrupted page is queried again.
    const page = Array.from({ length: PAGE_SIZE }, (_, nth) => `many-${5 * PAGE_SIZE + nth + 1}`);
    expect(again.length).toBeGreaterThan(0);
    expect(page).toEqual(expect.arrayContaining(again));
  });

  it('stays with a worker that renews its lease, despite another worker', async () => {
    const leaseUntil = async () => {
      const { rows } = await database.pool.query<{ until: Date }>(
        `SELECT lease_until AS until FROM reconciliation_runs WHERE status = 'running'`,
      );
      return rows[0]!.until.getTime();
    };
    let first: Promise<number> | null = null;
    wholesaler.beforeAnswer = async () => {
      const from = await (first ??= leaseUntil());
      await eventually(
        'a whole lease has been renewed',
        async () => (await leaseUntil()) >= from + LONG_LEASE_MS,
      );
    };
    const env = envWith(LONG_LEASE_MS);
    const services = await Promise.all([1, 2].map(() => startTestService({ role: 'worker', database, env })));
    try {
      expect(await completed()).toMatchObject({ fence: '1', differences: wrongOrders.length });
    } finally {
      for (const service of services) await service.stop();
    }
  });
});
