import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AlertsRepository } from '../../src/alerts/index.js';
import { CatalogHistoryRepository } from '../../src/catalog-sync/index.js';
import { Transactions } from '../../src/infra/database/index.js';
import { purgeInSteps } from '../../src/infra/purge-in-steps.js';
import { type PastOrders, PastOrdersRepository } from '../../src/orders/index.js';
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
  /** The age counts to the second, so the time of day does not matter. */
  readonly age: string;
  /** Age of a top-up of its first eSIM. */
  readonly topupAge?: string;
}

/** Inserts orders with two eSIMs each, and the simulated provider's rows. */
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

/** Ids of all orders. Fails if an order is missing any of its parts. */
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
  it('deletes orders older than 90 days of every partner, but no Live, open or recently topped-up ones', async () => {
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
    expect(await sandboxOrderPurge(service).purge()).toBe(3);
    expect(await wholeOrders()).toEqual([
      'live_1',
      'live_2',
      'open_1',
      'open_2',
      'topped',
      'young_1',
      'young_2',
    ]);
    expect(await sandboxOrderPurge(service).purge()).toBe(0);
  });

  it('skips an order that somebody has locked, and deletes it later', async () => {
    await insertOrders(['a', 'b', 'c'].map((id) => ({ id, age: '91 days' })));
    const other = await service.database.pool.connect();
    await other.query(`BEGIN; SELECT 1 FROM orders WHERE id = 'b' FOR UPDATE`);
    expect(await sandboxOrderPurge(service).purge()).toBe(2);
    expect(await wholeOrders()).toEqual(['b']);
    await other.query('COMMIT');
    other.release();
    expect(await sandboxOrderPurge(service).purge()).toBe(1);
  });

  it('leaves complete steps behind when it is killed, and the next run finishes', async () => {
    const ids = Array.from({ length: 120 }, (_, n) => `o_${String(n).padStart(3, '0')}`);
    await insertOrders(ids.map((id, n) => ({ id, age: `${300 - n} days`, topupAge: '200 days' })));
    const other = await service.database.pool.connect();
    // Locks an eSIM that the purge's second step deletes, so that this step waits in its transaction.
    await other.query(`BEGIN; SELECT 1 FROM esims WHERE order_id = 'o_070' FOR UPDATE`);
    const purge = sandboxOrderPurge(service).purge();
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
    expect(await sandboxOrderPurge(service).purge()).toBe(70);
    expect(await wholeOrders()).toEqual([]);
  });
});

/** Makes deleting the order `id` fail, as a constraint or trigger of a later release might. */
async function poison(id: string): Promise<void> {
  await query(
    `CREATE TABLE kept_orders (order_id text REFERENCES orders (id));
     CREATE TABLE kept_esims (esim_id text REFERENCES esims (id))`,
  );
  await query('INSERT INTO kept_orders VALUES ($1)', [id]);
}
const cure = () => query('DROP TABLE IF EXISTS kept_orders, kept_esims');

describe('an order that cannot be purged', () => {
  afterEach(cure);

  it('is skipped and logged while the others are deleted, and the next run retries it', async () => {
    const ids = Array.from({ length: 120 }, (_, n) => `o_${String(n).padStart(3, '0')}`);
    await insertOrders(ids.map((id, n) => ({ id, age: `${300 - n} days`, topupAge: '200 days' })));
    await poison('o_000');
    await query(`INSERT INTO kept_esims VALUES ('o_060_1')`);
    const failed: unknown[] = [];
    const logger = pino({}, { write: (line) => void failed.push(JSON.parse(line)) });
    expect(await sandboxOrderPurge(service, logger).purge()).toBe(118);
    expect(await wholeOrders()).toEqual(['o_000', 'o_060']);
    expect(failed).toMatchObject(
      ['o_000', 'o_060'].map((orderId) => ({ event: 'retention.order_failed', orderId })),
    );
    expect((await query('SELECT count(*)::int AS n FROM topups')).rows).toEqual([{ n: 2 }]);
    await query('DROP TABLE kept_esims');
    expect(await sandboxOrderPurge(service).purge()).toBe(1);
    expect(await wholeOrders()).toEqual(['o_000']);
  });

  it('does not block younger orders when its deletion times out', async () => {
    await insertOrders(['a', 'b', 'c'].map((id, n) => ({ id, age: `${200 - n} days` })));
    await query(
      `CREATE FUNCTION takes_long() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;
       CREATE TRIGGER takes_long BEFORE DELETE ON orders FOR EACH ROW WHEN (OLD.id = 'a') EXECUTE FUNCTION takes_long()`,
    );
    const purged = await sandboxOrderPurge(service)
      .purge()
      .finally(() => query('DROP FUNCTION takes_long CASCADE'));
    expect(purged).toBe(2);
    expect(await wholeOrders()).toEqual(['a']);
  });
});

describe('an order with many top-ups', () => {
  /** Inserts `count` top-ups of an eSIM, all older than 90 days. */
  const topUpOften = (esimId: string, count: number) =>
    query(
      `WITH sold AS (
         INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency,
                             validity_added_days, provider, provider_reference, upstream_package_id,
                             accepted_request_id, created_at, completed_at)
         SELECT 'many_' || n, 'ptn_1', 'sandbox', $1, '8910000000000000001', 'pkg_b', 'completed', 1, 'USD', 1, 'sandbox',
                'ref_many_' || n, 'pkg_b', 'req_1', now() - interval '100 days', now() FROM generate_series(1, $2::int) AS n
         RETURNING provider_reference)
       INSERT INTO sandbox_upstream_topups (reference, provider_esim_id, package_id)
       SELECT provider_reference, $1, 'pkg_b' FROM sold`,
      [esimId, count],
    );
  /** The number of top-ups deleted by each transaction. */
  async function deletedByStep(work: () => Promise<unknown>): Promise<number[]> {
    await query(
      `CREATE TABLE deleted_topups (step xid8 DEFAULT pg_current_xact_id(), n int);
       CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO deleted_topups (n) SELECT count(*) FROM gone; RETURN NULL; END $$;
       CREATE TRIGGER count_deleted AFTER DELETE ON topups REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION count_deleted()`,
    );
    try {
      await work();
      const { rows } = await query('SELECT sum(n)::int AS n FROM deleted_topups GROUP BY step ORDER BY step');
      return rows.map(({ n }) => n as number);
    } finally {
      await query('DROP FUNCTION count_deleted CASCADE; DROP TABLE deleted_topups');
    }
  }

  it('is deleted in steps of 500 top-ups, with its neighbors and itself in the last step', async () => {
    await insertOrders(['a', 'b', 'c'].map((id, n) => ({ id, age: `${200 - n} days` })));
    await topUpOften('b_2', 2_100);
    let purged = 0;
    const steps = await deletedByStep(async () => {
      purged = await sandboxOrderPurge(service).purge();
    });
    expect(purged).toBe(3);
    expect(steps).toEqual([500, 500, 500, 500, 100]);
    expect(await wholeOrders()).toEqual([]);
  });

  it('keeps all of them while one is recent or open', async () => {
    await insertOrders([
      { id: 'a', age: '200 days', topupAge: '89 days' },
      { id: 'b', age: '200 days' },
    ]);
    await topUpOften('a_1', 1_200);
    expect(await deletedByStep(() => sandboxOrderPurge(service).purge())).toEqual([0]);
    await query(
      `UPDATE topups SET created_at = now() - interval '91 days', status = 'processing', completed_at = NULL WHERE id = 'top_a'`,
    );
    expect(await deletedByStep(() => sandboxOrderPurge(service).purge())).toEqual([]);
    expect(await wholeOrders()).toEqual(['a']);
    expect((await query('SELECT count(*)::int AS n FROM topups')).rows).toEqual([{ n: 1_201 }]);
  });

  it('reads no more rows per step than it deletes, however many top-ups there are', async () => {
    await insertOrders([{ id: 'a', age: '200 days' }]);
    await topUpOften('a_1', 20_000);
    await query('ANALYZE orders, esims, topups, sandbox_upstream_topups');
    const stop = new AbortController();
    const queries = await explainQueriesOf(service.process.resources.dataSource, () => {
      const purged = sandboxOrderPurge(service).purge(stop.signal);
      stop.abort();
      return purged;
    });
    expect(queries.length).toBeGreaterThan(3);
    for (const { text, rows } of queries) expect(rows, text).toBeLessThanOrEqual(2_100);
  });

  it('is found just as quickly behind any number of orders that are kept', async () => {
    const kept = Array.from({ length: 3_000 }, (_, n) => ({
      id: `o_${n}`,
      age: `${3_100 - n} days`,
      topupAge: '1 day',
    }));
    await insertOrders([...kept, { id: 'past', age: '99 days' }]);
    await topUpOften('past_1', 20_000);
    await query('ANALYZE orders, esims, topups');
    const { admin, resources } = service.process;
    const { rows } = await query(
      `SELECT id, created_at::text AS "createdAt" FROM orders WHERE id = 'o_2990'`,
    );
    const orders = admin!.nest.get(PastOrdersRepository, { strict: false });
    let found: PastOrders | null = null;
    const queries = await explainQueriesOf(resources.dataSource, () =>
      new Transactions(resources.dataSource).run(async (tx) => {
        found = await orders.lockSandboxPast(tx, 90, { after: rows[0], limit: 50 });
      }),
    );
    expect(found).toMatchObject({ orders: [{ id: 'past' }], looked: 1 });
    for (const { text, rows } of queries) expect(rows, text).toBeLessThanOrEqual(200);
  });
});

describe('a purge of another table', () => {
  const manager = () => service.process.resources.dataSource.manager;

  it('deletes old alerts, in steps', async () => {
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

  it('deletes old prices and synchronizations, but keeps the last price of a package', async () => {
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

  it('reads no more prices than it deletes, however many there are', async () => {
    await fillTable(service.database.pool, 'package_price_history', 10_000, {
      package_id: `'pkg_one'`,
      changed_at: `now() - (i * 7919 % 10000) * interval '2 hours'`,
    });
    await query('ANALYZE package_price_history');
    const queries = await explainQueriesOf(service.process.resources.dataSource, () =>
      new CatalogHistoryRepository(manager()).purgePrices(400, 100),
    );
    expect(queries.map(({ scanned }) => scanned)).toEqual([[]]);
    // Each of 100 rows is read three times: by age, by the last price of its package, and to delete it.
    expect(queries[0]!.rows).toBeLessThanOrEqual(310);
  });
});
