import { afterAll, beforeAll, expect, it } from 'vitest';
import { placeOrder } from '../harness/order-steps.js';
import { LiveShop, place, PRICE } from './live-shop.js';

/** Tables that tell the transactions of an order apart. */
const WRITTEN = ['orders', 'sandbox_upstream_orders'];

let shop: LiveShop;

/** Records for each transaction that writes to `WRITTEN` whether its commit waits for the disk. */
async function watchCommits(): Promise<void> {
  const { pool, url } = shop.database;
  await pool.query(`CREATE TABLE commits (transaction xid8, written text, status text, waits boolean)`);
  await pool.query(`
    CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO commits VALUES (pg_current_xact_id(), TG_TABLE_NAME, to_jsonb(NEW)->>'status',
        current_setting('synchronous_commit') = 'on');
      RETURN NULL;
    END $$`);
  for (const table of WRITTEN)
    await pool.query(`
      CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION note_commit()`);
  // The test server's default is off. The setting applies to new sessions.
  await pool.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = 'on'`);
  await pool.query(
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'partner-esim-%'`,
  );
}

async function commits(): Promise<string[]> {
  const { rows } = await shop.database.pool.query<{ what: string }>(
    `SELECT concat_ws(' ', written, status, CASE WHEN waits THEN 'waits' ELSE 'does not wait' END) AS what
     FROM commits ORDER BY transaction`,
  );
  await shop.database.pool.query('TRUNCATE commits');
  return rows.map(({ what }) => what);
}

beforeAll(async () => {
  shop = await LiveShop.open();
  await watchCommits();
  await shop.startWorker();
});
afterAll(() => shop.close());

it('waits for the disk twice per order in Sandbox: when it is accepted and when it is issued (D61)', async () => {
  const partner = await shop.office.createPartner();
  const api = shop.api.partnerApi(partner.sandboxKey);
  const { id } = await placeOrder(api, { package_id: 'pkg_fr_1gb_7d' });
  await shop.settled({ id: partner.id, live: api }, id as string);
  expect(await commits()).toEqual([
    'orders pending waits',
    'orders processing does not wait',
    'sandbox_upstream_orders does not wait',
    'orders issued waits',
  ]);
});

it('waits before it buys in Live, because a lost record could buy twice (D19, D61)', async () => {
  const buyer = await shop.buyer(PRICE);
  const { id } = await place(buyer);
  await shop.settled(buyer, id as string);
  expect(await commits()).toEqual(['orders pending waits', 'orders processing waits', 'orders issued waits']);
});
