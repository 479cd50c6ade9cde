import type { Client } from 'pg';

/**
 * The default collation of the test databases: by language, letters before digits, lowercase after uppercase,
 * punctuation last. It exposes code that relies on byte order, from which a host's usual default differs less visibly.
 */
const LOCALE = 'en-US-u-ka-shifted-kf-upper-kr-latn-digit';

/** The role of every service under test, whose sessions start with settings that the service must override. */
export const SERVICE_ROLE = 'esim_service';

const SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'SQL, DMY',
  TimeZone: 'Australia/Lord_Howe',
  IntervalStyle: 'sql_standard',
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  extra_float_digits: '-15',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  quote_all_identifiers: 'on',
  search_path: 'decoy, public',
  default_transaction_isolation: 'serializable',
  default_transaction_read_only: 'on',
  default_transaction_deferrable: 'on',
  statement_timeout: '20ms',
  lock_timeout: '1ms',
  idle_in_transaction_session_timeout: '20ms',
  idle_session_timeout: '1s',
  // A connection can override this timeout only once it is open. A shorter timeout would abort session startup on a
  // busy
  // machine.
  transaction_timeout: '1h',
};

/** Creates a database whose collation and decoy tables break code that relies on defaults. */
export async function createUnusualDatabase(client: Client, name: string): Promise<void> {
  await client.query(
    `CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${LOCALE}' LOCALE 'C'`,
  );
}

/** Decoy tables that `search_path` finds before the service's own. */
export const DECOYS = `
  CREATE SCHEMA decoy;
  CREATE TABLE decoy.orders (id int);
  CREATE TABLE decoy.partners (id int);
  CREATE TABLE decoy.events (id int);
  CREATE TABLE decoy.schema_migrations (id int, timestamp bigint, name text);`;

export async function createServiceRole(client: Client): Promise<void> {
  await client.query(`CREATE ROLE ${SERVICE_ROLE} LOGIN SUPERUSER`);
  for (const [name, value] of Object.entries(SETTINGS))
    await client.query(
      `ALTER ROLE ${SERVICE_ROLE} SET ${name} = ${value
        .split(', ')
        .map((each) => `'${each}'`)
        .join(', ')}`,
    );
}

/** Names of databases on the test server. Other servers have no such role. */
const OF_TESTS = /^\/(?:t_[0-9a-f]+|template_esim)$/;

/** The URL of a test database for a service under test, also through a proxy. */
export function asServiceRole(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) return databaseUrl;
  const url = new URL(databaseUrl);
  if (!OF_TESTS.test(url.pathname)) return databaseUrl;
  url.username = SERVICE_ROLE;
  return url.href;
}
