import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';
import type { Cluster } from './cluster.js';
import { EmbeddedPostgresError, oneLine } from './errors.js';
import { HOST } from './port.js';
import { shutDown } from './postgres-process.js';
import { hasLivingOwner, isPostgresOf, readLock, type ServerLock } from './processes.js';
import type { RunningServer } from './started-server.js';

const POLL_MS = 250;
const CONNECT_TIMEOUT_MS = 2_000;
/** SQLSTATEs of a server that is starting up, shutting down or restarting after a crash. */
const OPERATOR_INTERVENTION = /^57P/;
/** SQLSTATE of a password that is not right. */
const INVALID_PASSWORD = '28P01';

/**
 * Takes over a server of this cluster that already runs (D2), after asking the server itself which data it
 * serves. While the process that started it lives, the server is shared: `stop` then leaves it running.
 * @returns undefined when it is starting, stopping or already gone: look again a little later
 * @throws EmbeddedPostgresError when it refuses the stored password or serves other data
 */
export async function adopt(cluster: Cluster, lock: ServerLock): Promise<RunningServer | undefined> {
  if (lock.status !== 'ready') return undefined;
  const served = await askDataDirectory(cluster, lock);
  if (served === undefined) return undefined;
  if ((await realpath(served).catch(() => served)) !== cluster.dataDir) {
    throw new EmbeddedPostgresError(
      `the PostgreSQL server on port ${lock.port} serves ${served}, not ${cluster.dataDir}`,
    );
  }
  // It may have been told to stop in the meantime.
  const now = await readLock(cluster.dataDir);
  return now?.status === 'ready' && now.pid === lock.pid ? adoptedServer(cluster, lock) : undefined;
}

function adoptedServer(cluster: Cluster, lock: ServerLock): RunningServer {
  const watch = new AbortController();
  const ended = untilGone(lock.pid, cluster.dataDir, watch.signal);
  return {
    port: lock.port,
    ended: ended.then(() => 'the adopted PostgreSQL server ended'),
    stop: async () => {
      if (await hasLivingOwner(cluster.dataDir, lock)) watch.abort();
      else await shutDown(lock.pid, ended);
    },
  };
}

/**
 * Resolves when a server that is not a child of this process has ended. It polls, because only a parent is told.
 * @param signal once aborted, the promise stays pending and nothing is polled any more
 */
export async function untilGone(pid: number, dataDir: string, signal?: AbortSignal): Promise<void> {
  while (await isPostgresOf(pid, dataDir)) {
    await sleep(POLL_MS, undefined, signal && { signal }).catch(() => {});
    if (signal?.aborted) return new Promise(() => {});
  }
}

async function askDataDirectory(cluster: Cluster, lock: ServerLock): Promise<string | undefined> {
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
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
    return rows[0]?.data_directory;
  } catch (error) {
    throwIfFinal(error, cluster, lock);
    return undefined;
  } finally {
    await client.end().catch(() => {});
  }
}

function throwIfFinal(error: unknown, cluster: Cluster, lock: ServerLock): void {
  if (!(error instanceof DatabaseError) || OPERATOR_INTERVENTION.test(error.code ?? '')) return;
  const reason = error.code === INVALID_PASSWORD ? 'it refuses the stored password' : oneLine(error);
  throw new EmbeddedPostgresError(
    `the PostgreSQL server (pid ${lock.pid}) of ${cluster.dataDir} cannot be used: ${reason}`,
    { cause: error },
  );
}

/** Milliseconds that such a server is given. Ending it too early would lose nothing: what is committed is on disk. */
const PATIENCE_MS = 3_000;

/**
 * Ends a server that has outlived its owner but neither serves nor stops (D2). PostgreSQL 18.4 gets there when
 * the fast shutdown comes while it restarts because one of its processes was killed: it then waits for ever.
 */
export class HungServerWatch {
  private readonly dataDir: string;
  private suspect = { pid: 0, since: 0 };

  constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  /** To be called after each failed attempt to adopt the server that holds the lock. */
  async check(): Promise<void> {
    const lock = await readLock(this.dataDir);
    // A server that is starting may have hours of changes to recover.
    if (!lock || lock.status === 'starting') return;
    if (lock.pid !== this.suspect.pid) this.suspect = { pid: lock.pid, since: Date.now() };
    if (Date.now() - this.suspect.since < PATIENCE_MS) return;
    if (!(await isPostgresOf(lock.pid, this.dataDir))) return;
    if (await hasLivingOwner(this.dataDir, lock)) return;
    await shutDown(lock.pid, untilGone(lock.pid, this.dataDir), 'SIGQUIT');
  }
}
