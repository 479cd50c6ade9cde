import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { QueryRunner } from 'typeorm';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { SearchAcrossPartners1763700000088 } from '../../../migrations/1763700000088-search-across-partners.js';
import { migrateDatabase } from '../../../src/apps/migration.js';
import { DatabaseProxy } from '../../../chaos/database-proxy.js';
import { dropDatabase, onDatabase } from '../../harness/database.js';
import { loadConfig } from '../../../src/config/index.js';
import { startRole } from '../../../src/apps/role-process.js';
import { eventually, testEnvironment } from '../../harness/index.js';

const MIGRATION_LOCK = 7_302_113;
const LOST = /^the connection to the database was lost \(.+\)\. Run the migration again once/;

let url: string;
let proxy: DatabaseProxy;
/** A client that bypasses the proxy. */
let beside: Client;

beforeEach(async () => {
  const empty = new URL(inject('postgresUrl'));
  empty.pathname = `/t_${randomBytes(6).toString('hex')}`;
  url = empty.href;
  await onDatabase(inject('postgresUrl'), `CREATE DATABASE ${empty.pathname.slice(1)}`);
  proxy = await DatabaseProxy.start(url);
  beside = new Client({ connectionString: url });
  await beside.connect();
});
afterEach(async () => {
  await proxy.stop();
  await beside.end();
  await dropDatabase(url);
});

/** The error message of the migration, which must fail. */
const migrate = (): Promise<string> =>
  migrateDatabase(proxy.url).then(
    () => 'done',
    (error: Error) => error.message,
  );

const isThere = async (condition: string): Promise<boolean> =>
  (await beside.query<{ there: boolean }>(`SELECT ${condition} AS there`)).rows[0]!.there;

it('fails a migration whose connections die silently while it waits for its turn', async () => {
  await beside.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
  const migration = migrate();
  await eventually('it asks for the lock', () =>
    isThere(`EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock(%' AND pid <> pg_backend_pid()
                     AND datname = current_database())`),
  );
  proxy.swallow();
  await expect(migration).resolves.toMatch(LOST);
});

/** Starts a migration whose first CREATE TABLE hangs, and waits until it is running. */
async function startHeldUp(): Promise<{ readonly ended: Promise<string> }> {
  await beside.query(`
    CREATE FUNCTION hold_up() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); END $$;
    CREATE EVENT TRIGGER hold_up ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION hold_up();`);
  const ended = migrate();
  await eventually('its statement is under way', () =>
    isThere(
      `EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())`,
    ),
  );
  return { ended };
}

it('fails a migration whose connections die silently while it waits for a statement', async () => {
  const { ended } = await startHeldUp();
  proxy.swallow();
  await expect(ended).resolves.toMatch(LOST);
});

it('fails a migration that loses its lock, and stops its other connection', async () => {
  const { ended } = await startHeldUp();
  await beside.query(
    `SELECT pg_terminate_backend(pid) FROM pg_locks
     WHERE locktype = 'advisory' AND objid = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [MIGRATION_LOCK],
  );
  await expect(ended).resolves.toMatch(LOST);
  await eventually('no connection is left', () => proxy.open === 0);
});

it('runs two concurrent migrations so that one does the work and both succeed', async () => {
  // If the second one waited in a statement, CREATE INDEX CONCURRENTLY would wait for it forever.
  const reports = await Promise.all([migrateDatabase(url), migrateDatabase(url)]);
  const [none, all] = reports.map(({ migrations }) => migrations.length).sort((a, b) => a - b);
  expect([none, all! > 20]).toEqual([0, true]);
});

it.each(['SQL_ASCII', 'LATIN1'])(
  'neither migrates nor serves a database with the encoding %s',
  async (encoding) => {
    const other = new URL(inject('postgresUrl'));
    const name = `t_${randomBytes(6).toString('hex')}`;
    await onDatabase(
      other.href,
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'`,
    );
    other.pathname = `/${name}`;
    try {
      const reason = `the database is encoded in ${encoding} and the service needs UTF8`;
      await expect(migrateDatabase(other.href)).rejects.toThrow(reason);
      await expect(startRole('api', loadConfig(testEnvironment(other.href)))).rejects.toThrow(reason);
    } finally {
      await dropDatabase(other.href);
    }
  },
);

it('keeps the new index of references if it was stopped while it dropped the old one', async () => {
  await migrateDatabase(url);
  await beside.query(`
    CREATE UNIQUE INDEX orders_reference_next ON orders (reference, partner_id, mode) WHERE reference IS NOT NULL;
    UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 'orders_reference'::regclass`);
  const indexOf = async (name: string): Promise<unknown> =>
    (await beside.query('SELECT $1::regclass::oid AS oid', [name])).rows[0];
  const built = await indexOf('orders_reference_next');
  const query = async (text: string): Promise<unknown> => (await beside.query(text)).rows;
  await new SearchAcrossPartners1763700000088().up({ query } as unknown as QueryRunner);
  expect(await indexOf('orders_reference')).toEqual(built);
});
