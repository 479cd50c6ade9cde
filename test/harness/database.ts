import { randomBytes } from 'node:crypto';
import { Client, Pool } from 'pg';
import { inject } from 'vitest';
import { TEMPLATE_DATABASE } from './template-database.js';

export interface TestDatabase {
  readonly url: string;
  /** Plain SQL alongside the service, to inspect or prepare rows. */
  readonly pool: Pool;
  drop(): Promise<void>;
}

/** Creates a migrated database with the Sandbox catalog, as a clone of the template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const url = await cloneDatabase(urlOf(TEMPLATE_DATABASE));
  const pool = openPool(url, 4);
  return {
    url,
    pool,
    drop: async () => {
      await pool.end();
      await dropDatabase(url);
    },
  };
}

/** Copies a database of the test server that has no connections, and returns the URL of the copy. */
export async function cloneDatabase(url: string): Promise<string> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  await onServer(`CREATE DATABASE ${name} TEMPLATE ${nameOf(url)} STRATEGY FILE_COPY`);
  return urlOf(name);
}

export async function dropDatabase(url: string): Promise<void> {
  await onServer(`DROP DATABASE IF EXISTS ${nameOf(url)} WITH (FORCE)`);
}

function urlOf(database: string): string {
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${database}`;
  return url.href;
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** A pool per process for creating and dropping databases, because a connection for each would double the cost. */
let server: Pool | null = null;

async function onServer(statement: string): Promise<void> {
  server ??= openPool(inject('postgresUrl'), 1);
  await server.query(statement);
}

/**
 * A pool that survives connections closed by the server. `end()` does not wait for the server, so dropping the database
 * right after it terminates some connections. Without a listener, that error would fail the whole run.
 */
export function openPool(databaseUrl: string, max: number): Pool {
  const pool = new Pool({ connectionString: databaseUrl, max });
  pool.on('error', () => undefined);
  return pool;
}

/** Runs statements over a separate connection. */
export async function onDatabase(url: string, statements: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statements);
  } finally {
    await client.end();
  }
}

/** The TCP URL, for proxies between client and server and for processes with another /tmp. */
export function overTcp(databaseUrl: string): URL {
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  return url;
}

/** The number of transactions of the database that wait for a lock. */
export async function waitingForLocks({ pool }: Pick<TestDatabase, 'pool'>): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0]!.n;
}
