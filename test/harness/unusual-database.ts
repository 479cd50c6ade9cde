import type { Client } from 'pg';

/**
 * How the tests' databases order text where a statement does not say: by language, letters before digits, small after
 * capital letters, signs last of all. A host's default is as far from the order of bytes, and less visibly so.
 */
const LOCALE = 'en-US-u-ka-shifted-kf-upper-kr-latn-digit';

/** The role of every service under test: its sessions begin with settings that none of ours can work with. */
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
  // A connection lifts it only once it is open: a shorter one would cut the start of a session on a busy machine.
  transaction_timeout: '1h',
};

/** Makes a database whose order of text, and the tables that it shows first, mislead whoever relies on them. */
export async function createUnusualDatabase(client: Client, name: string): Promise<void> {
  await client.query(
    `CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${LOCALE}' LOCALE 'C'`,
  );
}

/** The decoys that `search_path` finds before the service's own tables. */
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

/** The databases of the tests' server; those of other servers have no such role. */
const OF_TESTS = /^\/(?:t_[0-9a-f]+|template_esim)$/;

/** The URL of a database of the tests' server, also through a proxy, as a service under test has it. */
export function asServiceRole(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) return databaseUrl;
  const url = new URL(databaseUrl);
  if (!OF_TESTS.test(url.pathname)) return databaseUrl;
  url.username = SERVICE_ROLE;
  return url.href;
}
