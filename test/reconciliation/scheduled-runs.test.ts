import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cloneDatabase, dropDatabase } from '../harness/database.js';
import { eventually, openPool, startTestService, type TestService } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { corrupt } from './book-breaches.js';
import { type Sold, SoldWorld } from './sold-world.js';
import type { Pool } from 'pg';

const EVERY_MS = 500;

let world: SoldWorld;
let sold: Sold;
let url: string;
let pool: Pool;
let service: TestService;
let second: TestService;

beforeAll(async () => {
  world = await SoldWorld.open();
  sold = await world.sell();
  await world.stopService();
  url = await cloneDatabase(world.database.url);
  await corrupt(
    url,
    `UPDATE orders SET refunded_amount = 1 WHERE id = '${sold.issued}';
     UPDATE topups SET price_amount = price_amount + 1 WHERE id = '${sold.failedTopup}';
     UPDATE wallets SET held = held + 1`,
  );
  pool = openPool(url, 2);
  const database = { url, pool, drop: () => Promise.resolve() };
  const env = { ...world.env, RECONCILE_INTERVAL_MS: String(EVERY_MS) };
  service = await startTestService({ database, env });
  second = await startTestService({ role: 'worker', database, env });
});

afterAll(async () => {
  await second.stop();
  await service.stop();
  await pool.end();
  await dropDatabase(url);
  await dropDatabase(world.database.url);
  await world.close();
});

async function completedRuns(): Promise<Json[]> {
  const { rows } = await pool.query<Json>(
    `SELECT * FROM reconciliation_runs WHERE status = 'completed' ORDER BY id`,
  );
  return rows;
}

describe('the scheduled reconciliation', () => {
  it('keeps each run with what it checked and found, providers included', async () => {
    const [run] = await eventually('a run', async () => {
      const runs = await completedRuns();
      return runs.length > 0 ? runs : null;
    });
    expect(run).toMatchObject({ differences: 3, unanswered: 0, lease_until: null });
    expect(run!['checked']).toMatchObject({ orders: 7, topups: 2, wallets: 1 });
    const { rows } = await pool.query<Json>(
      'SELECT check_name, severity, subject FROM reconciliation_differences WHERE run_id = $1 ORDER BY seq',
      [run!['id']],
    );
    expect(rows.map((row) => row['check_name'])).toEqual([
      'wallet_held_is_its_holds',
      'order_refunds_agree',
      'failed_topup_costs_nothing',
    ]);
    expect(rows[1]!['subject'].order).toBe(sold.issued);
  });

  it('alerts support of a difference in an order or a top-up once, however many runs find it', async () => {
    await eventually('three runs', async () => (await completedRuns()).length >= 3);
    const alerts = async (type: string) =>
      (await service.admin.get(`/internal/v1/alerts?type=${type}`)).body.data as Json[];
    expect(await alerts('order.needs_review')).toMatchObject([
      { subject_id: sold.issued, details: { reconciliation: 'order_refunds_agree' } },
    ]);
    expect(await alerts('topup.needs_review')).toMatchObject([
      { subject_id: sold.failedTopup, details: { reconciliation: 'failed_topup_costs_nothing' } },
    ]);
  });

  it('runs once per interval, however many workers there are', async () => {
    const runs = await eventually('five runs', async () => {
      const found = await completedRuns();
      return found.length >= 5 ? found : null;
    });
    const starts = runs.map((run) => (run['started_at'] as Date).getTime());
    for (let i = 1; i < starts.length; i++)
      expect(starts[i]! - starts[i - 1]!).toBeGreaterThanOrEqual(EVERY_MS);
  });

  it('shows the differences of the last run as a gauge', async () => {
    const { text } = await service.admin.get('/metrics');
    expect(text).toMatch(/^reconciliation_differences\{.*\} 3$/m);
  });

  it('takes over from a worker that died in its run, and forgets the oldest runs', async () => {
    await pool.query(`
      INSERT INTO reconciliation_runs (status, started_at, lease_until)
      VALUES ('running', now() - interval '7 hours', now() - interval '1 hour');
      INSERT INTO reconciliation_runs (status, started_at, ended_at)
      SELECT 'completed', now() - interval '9 days', now() - interval '9 days' FROM generate_series(1, 40)`);
    await eventually('only thirty are kept', async () => {
      const { rows } = await pool.query<{ runs: number; running: number }>(
        `SELECT count(*)::int AS runs, count(*) FILTER (WHERE lease_until <= now())::int AS running
         FROM reconciliation_runs`,
      );
      return rows[0]!.runs <= 31 && rows[0]!.running === 0;
    });
  });
});
