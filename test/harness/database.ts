import { randomBytes } from 'node:crypto';
import { Client, Pool } from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Plain SQL beside the service, to look at or to prepare rows. */
  readonly pool: Pool;
  drop(): Promise<void>;
}

/** A database of its own, migrated and with the Sandbox catalogue: a clone of the template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `t_${randomBytes(6).toString('hex')}`;
  await onServer(serverUrl, `CREATE DATABASE ${name} TEMPLATE template_esim STRATEGY FILE_COPY`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = openPool(url.href, 4);
  return {
    url: url.href,
    pool,
    drop: async () => {
      await pool.end();
      await onServer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** This process's way to make and drop databases, for as long as it lives: a connection for each costs as much again. */
let server: Pool | null = null;

async function onServer(serverUrl: string, statement: string): Promise<void> {
  server ??= openPool(serverUrl, 1);
  await server.query(statement);
}

/**
 * A pool that outlives connections which the server ends. `end()` does not wait until the server has let them go, so that a database
 * dropped right after it ends some by force, which without a listener is an error of the whole run.
 */
export function openPool(databaseUrl: string, max: number): Pool {
  const pool = new Pool({ connectionString: databaseUrl, max });
  pool.on('error', () => undefined);
  return pool;
}

/** Runs statements over a connection of its own. */
export async function onDatabase(url: string, statements: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statements);
  } finally {
    await client.end();
  }
}

/** Without its Unix-domain socket: for what stands between a client and the server, or sees another /tmp. */
export function overTcp(databaseUrl: string): URL {
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  return url;
}

/** How many transactions of the database wait for a lock. */
export async function waitingForLocks({ pool }: Pick<TestDatabase, 'pool'>): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0]!.n;
}
