import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import type { Cluster } from './cluster.js';
import { EmbeddedPostgresError, oneLine, systemCode } from './errors.js';
import { readLock, type ServerLock } from './lock-file.js';
import { HOST } from './port.js';
import { isChildOf, isPostgresOf } from './processes.js';
import type { RunningServer } from './running-server.js';
import { shutDown } from './shutdown.js';

/** The setting in which a server carries the pid of the process that started it. */
export const STARTED_BY = 'embedded.started_by';

const POLL_MS = 250;
const CONNECT_TIMEOUT_MS = 2_000;
/** SQLSTATE of a server that is starting up or shutting down. */
const CANNOT_CONNECT_NOW = '57P03';
/** SQLSTATE of a password that is not right. */
const INVALID_PASSWORD = '28P01';

/**
 * Takes over a server of this cluster that already runs (D2), after asking the server itself which data it
 * serves. While the process that started it lives, the server is shared: `stop` then leaves it running.
 * @returns undefined when it is starting, stopping or already gone: look again a little later
 * @throws EmbeddedPostgresError when it refuses the stored password or serves other data
 */
export async function adopt(cluster: Cluster, lock: ServerLock): Promise<RunningServer | undefined> {
  if (!lock.ready) return undefined;
  const identity = await askIdentity(cluster, lock);
  if (!identity) return undefined;
  const served = await realpath(identity.dataDirectory).catch(() => identity.dataDirectory);
  if (served !== cluster.dataDir) {
    throw new EmbeddedPostgresError(
      `the PostgreSQL server on port ${lock.port} serves ${served}, not ${cluster.dataDir}`,
    );
  }
  // It may have been told to stop in the meantime.
  if (!(await readLock(cluster.dataDir))?.ready) return undefined;
  return adoptedServer(cluster, lock, identity.startedBy);
}

function adoptedServer(cluster: Cluster, lock: ServerLock, startedBy: number): RunningServer {
  const watch = new AbortController();
  const ended = untilGone(lock.pid, cluster.dataDir, watch.signal);
  return {
    port: lock.port,
    ended: ended.then(() => 'the adopted PostgreSQL server ended'),
    stop: async () => {
      if (await isChildOf(lock.pid, startedBy)) watch.abort();
      else await shutDown(lock.pid, ended);
    },
  };
}

/** Polls, because only a parent is told when a process ends. Never resolves once `signal` is aborted. */
async function untilGone(pid: number, dataDir: string, signal: AbortSignal): Promise<void> {
  while (await isPostgresOf(pid, dataDir)) {
    if (signal.aborted) return new Promise(() => {});
    await sleep(POLL_MS, undefined, { ref: false });
  }
}

interface ServerIdentity {
  readonly dataDirectory: string;
  /** NaN when somebody else than this supervisor started it. */
  readonly startedBy: number;
}

async function askIdentity(cluster: Cluster, lock: ServerLock): Promise<ServerIdentity | undefined> {
  const client = new Client({
    host: HOST,
    port: lock.port,
    user: 'postgres',
    database: 'postgres',
    password: cluster.password,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // Without a listener, a connection that breaks between two calls would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ dir: string; owner: string | null }>(
      `SELECT current_setting('data_directory') AS dir, current_setting($1, true) AS owner`,
      [STARTED_BY],
    );
    const [row] = rows;
    return row && { dataDirectory: row.dir, startedBy: Number.parseInt(row.owner ?? '', 10) };
  } catch (error) {
    throwIfFinal(error, cluster, lock);
    return undefined;
  } finally {
    await client.end().catch(() => {});
  }
}

function throwIfFinal(error: unknown, cluster: Cluster, lock: ServerLock): void {
  if (systemCode(error) === INVALID_PASSWORD) {
    throw new EmbeddedPostgresError(
      `the PostgreSQL server (pid ${lock.pid}) of ${cluster.dataDir} refuses the stored password`,
      { cause: error },
    );
  }
  const sqlState = /^[0-9A-Z]{5}$/.exec(systemCode(error) ?? '')?.[0];
  if (sqlState === undefined || sqlState === CANNOT_CONNECT_NOW) return;
  throw new EmbeddedPostgresError(
    `the PostgreSQL server (pid ${lock.pid}) of ${cluster.dataDir} cannot be used: ${oneLine(error)}`,
    { cause: error },
  );
}
