import type { ClientBase } from 'pg';
import type { DataSource } from 'typeorm';
import { type DatabaseClient, SESSION_SETTINGS, settingsOfSession } from './database-client.js';
import { poolOf } from './database.module.js';

type Settings = Readonly<Record<string, string>>;

/** `assertSession` on a connection of `dataSource`. */
export async function assertSessionsOf(dataSource: DataSource): Promise<void> {
  const client = await poolOf(dataSource).connect();
  try {
    await assertSession(client);
  } finally {
    client.release();
  }
}

/**
 * Checks that an open connection has the settings that the code relies on (D66). A pooler may drop a session's start-up
 * options, or hand out sessions with other settings.
 * @throws Error that says what to change; also when the database's encoding is not UTF8
 */
export async function assertSession(client: ClientBase): Promise<void> {
  await assertUtf8(client);
  const { isPooled, ...asked } = (client as unknown as DatabaseClient).settings;
  await (isPooled ? assertPooledSettings(client) : assertOwnSettings(client, settingsOfSession(asked)));
}

async function assertUtf8(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ encoding: string }>(
    `SELECT current_setting('server_encoding') AS encoding`,
  );
  const { encoding } = rows[0]!;
  if (encoding === 'UTF8') return;
  throw new Error(
    `the database is encoded in ${encoding} and the service needs UTF8: ` +
      `use a database made by CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0`,
  );
}

async function assertOwnSettings(client: ClientBase, asked: Settings): Promise<void> {
  // A Unix socket has no TCP keepalive settings: they read as 0.
  const wanted = Object.entries(asked).filter(([name]) => !name.startsWith('tcp_'));
  const wrong = await findMistaken(client, Object.fromEntries(wanted));
  if (wrong.length === 0) return;
  throw new Error(
    'a pooler between the service and PostgreSQL drops start-up options (in PgBouncer: `options` in ' +
      `ignore_startup_parameters), so these settings have no effect: ${wrong.join(', ')}. ` +
      'Set DATABASE_DIRECT_URL to the address of the primary, without the pooler',
  );
}

/** Checks the pooler's sessions: statements outside a transaction run with their initial settings. */
async function assertPooledSettings(client: ClientBase): Promise<void> {
  const { search_path: searchPath, ...others } = SESSION_SETTINGS;
  const wanted: Settings = { ...others, transaction_timeout: '0' };
  const statements = (await findMistaken(client, wanted)).map((name) => mendRole(name, wanted[name]!));
  const { rows } = await client.query<{ is_public: boolean }>(
    `SELECT to_regclass('orders') IS NOT DISTINCT FROM to_regclass('public.orders') AS is_public`,
  );
  if (!rows[0]!.is_public) statements.push(mendRole('search_path', searchPath!));
  if (statements.length === 0) return;
  throw new Error(
    'the sessions behind the pooler start with settings that the service does not support: ' +
      `run ${statements.join(' ')} as its role, then make the pooler connect again (RECONNECT in PgBouncer)`,
  );
}

const mendRole = (name: string, value: string): string => `ALTER ROLE CURRENT_USER SET ${name} = '${value}';`;

/** Names of settings that differ from `wanted`, in its order. The server may not know all of them. */
async function findMistaken(client: ClientBase, wanted: Settings): Promise<string[]> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
    [Object.keys(wanted)],
  );
  const found = new Map(rows.map(({ name, setting }) => [name, setting]));
  return Object.keys(wanted).filter((name) => found.has(name) && found.get(name) !== wanted[name]);
}
