import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AlertsRepository } from '../../src/alerts/index.js';
import { CatalogHistoryRepository } from '../../src/catalog-sync/index.js';
import { purgeInSteps } from '../../src/infra/purge-in-steps.js';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
import { fillTable } from '../infra/database/filled-tables.js';
import { sandboxOrderPurge } from './purge-by-hand.js';

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ role: 'admin' });
  await query(
    `INSERT INTO partners (id, name, status) VALUES ('ptn_1', 'One', 'active'), ('ptn_2', 'Two', 'active')`,
  );
});
afterAll(() => service.stop());
beforeEach(() =>
  query('TRUNCATE orders, esims, topups, sandbox_upstream_orders, sandbox_upstream_topups CASCADE'),
);

const query = (text: string, values: unknown[] = []) => service.database.pool.query(text, values);

interface OrderRow {
  readonly id: string;
  readonly partner?: string;
  readonly mode?: 'sandbox' | 'live';
  readonly status?: string;
  /** Hours around midnight of 90 days ago do not matter: the age counts to the second. */
  readonly age: string;
  /** Age of a top-up of its first eSIM. */
  readonly topupAge?: string;
}

/** Orders with two eSIMs each, and what the simulated provider remembers. */
async function insertOrders(orders: readonly OrderRow[]): Promise<void> {
  const rows = JSON.stringify(
    orders.map((order) => ({ partner: 'ptn_1', mode: 'sandbox', status: 'issued', ...order })),
  );
  const from = `FROM jsonb_to_recordset($1::jsonb) AS r (id text, partner text, mode text, status text, age interval,
                "topupAge" interval)`;
  await query(
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, unit_price_amount, currency,
                         provider, provider_reference, upstream_package_id, accepted_request_id, validity_days,
                         activation_policy, created_at)
     SELECT id, partner, mode, status, 'pkg_a', 2, 2, 1, 'USD', mode, 'ref_' || id, 'pkg_a', 'req_1', 1, 'on_install',
            now() - age ${from}`,
    [rows],
  );
  await query(
    `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
                        unlimited, total_bytes, usage_source, validity_days, activation_policy, provider,
                        provider_esim_id, created_at)
     SELECT id || '_' || n, partner, mode, id, 'pkg_a', '8910000000000000001', 'issued', 'released', '', false, 1,
            'poll', 1, 'on_install', mode, id || '_' || n, now() - age ${from} CROSS JOIN generate_series(1, 2) AS n`,
    [rows],
  );
  await query(
    `INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency,
                         validity_added_days, provider, provider_reference, upstream_package_id, accepted_request_id,
                         created_at, completed_at)
     SELECT 'top_' || id, partner, mode, id || '_1', '8910000000000000001', 'pkg_b', 'completed', 1, 'USD', 1, mode,
            'ref_top_' || id, 'pkg_b', 'req_1', now() - "topupAge", now() ${from} WHERE "topupAge" IS NOT NULL`,
    [rows],
  );
  await query(
    `INSERT INTO sandbox_upstream_orders (reference, package_id, quantity, outcome, profiles, ready_at)
     SELECT 'ref_' || id, 'pkg_a', 2, 'provisioned', '', now() ${from} WHERE mode = 'sandbox'`,
    [rows],
  );
  await query(
    `INSERT INTO sandbox_upstream_topups (reference, provider_esim_id, package_id)
     SELECT 'ref_top_' || id, id || '_1', 'pkg_b' ${from} WHERE mode = 'sandbox' AND "topupAge" IS NOT NULL`,
    [rows],
  );
}

/** Ids of the orders that are there whole; an order without one of its parts fails. */
async function wholeOrders(): Promise<string[]> {
  const { rows } = await query(
    `SELECT o.id, (SELECT count(*)::int FROM esims e WHERE e.order_id = o.id) AS esims,
            o.mode = 'live' OR EXISTS (SELECT 1 FROM sandbox_upstream_orders u WHERE u.reference = o.provider_reference)
              AS remembered
     FROM orders o ORDER BY o.id`,
  );
  for (const row of rows) expect(row).toMatchObject({ esims: 2, remembered: true });
  const { rows: orphans } = await query(
    `SELECT u.reference FROM sandbox_upstream_orders u
     WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.provider_reference = u.reference)
     UNION ALL SELECT u.reference FROM sandbox_upstream_topups u
     WHERE NOT EXISTS (SELECT 1 FROM topups t WHERE t.provider_reference = u.reference)`,
  );
  expect(orphans).toEqual([]);
  return rows.map((row) => row.id as string);
}

describe('the purge of Sandbox orders', () => {
  it('takes what is older than 90 days, of every partner, and never Live, open or lately topped up', async () => {
    await insertOrders([
      { id: 'past_1', age: '90 days 1 minute' },
      { id: 'past_2', partner: 'ptn_2', age: '400 days', status: 'failed' },
      { id: 'past_3', age: '120 days', topupAge: '91 days', status: 'canceled' },
      { id: 'young_1', age: '89 days 23 hours' },
      { id: 'young_2', partner: 'ptn_2', age: '1 day' },
      { id: 'live_1', mode: 'live', age: '400 days' },
      { id: 'live_2', mode: 'live', partner: 'ptn_2', age: '400 days', topupAge: '399 days' },
      { id: 'open_1', age: '400 days', status: 'processing' },
      { id: 'open_2', age: '400 days', status: 'canceling' },
      { id: 'topped', age: '400 days', topupAge: '89 days' },
    ]);
    expect(await sandboxOrderPurge(service).execute()).toBe(3);
    expect(await wholeOrders()).toEqual([
      'live_1',
      'live_2',
      'open_1',
      'open_2',
      'topped',
      'young_1',
      'young_2',
    ]);
    expect(await sandboxOrderPurge(service).execute()).toBe(0);
  });

  it('passes over an order that somebody has locked, and takes it later', async () => {
    await insertOrders(['a', 'b', 'c'].map((id) => ({ id, age: '91 days' })));
    const other = await service.database.pool.connect();
    await other.query(`BEGIN; SELECT 1 FROM orders WHERE id = 'b' FOR UPDATE`);
    expect(await sandboxOrderPurge(service).execute()).toBe(2);
    expect(await wholeOrders()).toEqual(['b']);
    await other.query('COMMIT');
    other.release();
    expect(await sandboxOrderPurge(service).execute()).toBe(1);
  });

  it('that is killed in the middle leaves whole steps behind, and the next one ends it', async () => {
    const ids = Array.from({ length: 120 }, (_, n) => `o_${String(n).padStart(3, '0')}`);
    await insertOrders(ids.map((id, n) => ({ id, age: `${300 - n} days`, topupAge: '200 days' })));
    const other = await service.database.pool.connect();
    // Of the second step: it waits here, in the middle of its transaction.
    await other.query(`BEGIN; SELECT 1 FROM esims WHERE order_id = 'o_070' FOR UPDATE`);
    const purge = sandboxOrderPurge(service).execute();
    const failure = expect(purge).rejects.toThrow('terminating connection');
    await eventually('it waits', async () => {
      const { rowCount } = await query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM esims%' AND datname = current_database()`,
      );
      return rowCount === 1;
    });
    await failure;
    expect(await wholeOrders()).toEqual(ids.slice(50));
    await other.query('COMMIT');
    other.release();
    expect(await sandboxOrderPurge(service).execute()).toBe(70);
    expect(await wholeOrders()).toEqual([]);
  });
});

describe('the purges of other tables', () => {
  const manager = () => service.process.resources.dataSource.manager;

  it('take alerts at their age, in steps', async () => {
    await query(
      `INSERT INTO alerts (id, type, subject_id, created_at)
       SELECT 'alr_old_' || n, 't', 's', now() - interval '90 days 1 minute' FROM generate_series(1, 2500) AS n
       UNION ALL SELECT 'alr_young', 't', 's', now() - interval '89 days'`,
    );
    const alerts = new AlertsRepository(manager(), null as never);
    expect(await alerts.purge(90, 1_000)).toBe(1_000);
    expect(await purgeInSteps((limit) => alerts.purge(90, limit))).toBe(1_500);
    expect((await query('SELECT id FROM alerts')).rows).toEqual([{ id: 'alr_young' }]);
  });

  it('take prices and synchronisations at their age; the last price of a package stays', async () => {
    await query(
      `INSERT INTO package_price_history (package_id, price_amount, currency, available, changed_at)
       SELECT p, 1, 'USD', true, now() - age FROM (VALUES
         ('a', interval '500 days'), ('a', '401 days'), ('a', '399 days'), ('b', '600 days'), ('b', '500 days')) AS v (p, age)`,
    );
    await query(
      `INSERT INTO catalog_syncs (id, status, requested_at, ended_at)
       VALUES ('old', 'completed', now() - interval '31 days', now() - interval '31 days'),
              ('young', 'completed', now() - interval '31 days', now() - interval '29 days')`,
    );
    const history = new CatalogHistoryRepository(manager());
    expect(await history.purgePrices(400, 1_000)).toBe(3);
    const { rows } = await query(
      `SELECT package_id || ' ' || extract(day FROM now() - changed_at) AS row FROM package_price_history ORDER BY 1`,
    );
    expect(rows.map(({ row }) => row)).toEqual(['a 399', 'b 500']);
    expect(await history.purgeSyncs(30, 1_000)).toBe(1);
    expect((await query('SELECT id FROM catalog_syncs')).rows).toEqual([{ id: 'young' }]);
  });

  it('look at no more prices than they take, however many there are', async () => {
    await fillTable(service.database.pool, 'package_price_history', 10_000, {
      package_id: `'pkg_one'`,
      changed_at: `now() - (i * 7919 % 10000) * interval '2 hours'`,
    });
    await query('ANALYZE package_price_history');
    const queries = await explainQueriesOf(service.process.resources.dataSource, () =>
      new CatalogHistoryRepository(manager()).purgePrices(400, 100),
    );
    expect(queries.map(({ scanned }) => scanned)).toEqual([[]]);
    // Each of 100 once by its age, once by the last of its package, once to be deleted.
    expect(queries[0]!.rows).toBeLessThanOrEqual(310);
  });
});
