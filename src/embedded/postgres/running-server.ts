import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';
import type { Cluster } from './cluster.js';
import { EmbeddedPostgresError, oneLine } from './errors.js';
import { HOST, socketDirectoryOf } from './port.js';
import {
  hasLivingOwner,
  isPostgresOf,
  type PostgresProcess,
  readLock,
  runPostgres,
  type ServerLock,
  shutDown,
  STARTED_BY,
} from './postgres-process.js';

/** A server that accepts connections, started by this process or adopted. */
export interface RunningServer {
  readonly port: number;
  /** Resolves with a short text when the server has ended for any reason. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

export type ServerSettings = Readonly<Record<string, string | number>>;

/** Reasons for a failed start after which another attempt may succeed. */
export type Obstacle = 'locked' | 'orphans' | 'meaningless-lock' | 'port-taken';

export interface ServerOptions {
  readonly port: number;
  readonly settings: ServerSettings;
  /** A pid in this cluster's lock that is known to belong to another process now. */
  readonly stalePid: number | undefined;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
}

const DEFAULT_SETTINGS: ServerSettings = {
  listen_addresses: HOST,
  shared_buffers: '64MB',
  max_connections: 100,
  log_min_messages: 'warning',
  jit: 'off',
};

/** PostgreSQL messages (LC_ALL=C) after which another attempt may succeed. */
const OBSTACLES: readonly [RegExp, Obstacle][] = [
  [/lock file ".*" already exists|could not remove old lock file/, 'locked'],
  [/pre-existing shared memory block/, 'orphans'],
  [/lock file ".*" is empty|bogus data in lock file/, 'meaningless-lock'],
  [/could not create any TCP\/IP sockets|Address already in use/, 'port-taken'],
];

const POLL_MS = 10;

/**
 * Starts a server on a cluster and waits until it accepts connections.
 * @throws EmbeddedPostgresError with its last message when it fails for good, or is not ready by the deadline
 */
export async function startServer(
  cluster: Cluster,
  options: ServerOptions,
): Promise<RunningServer | Obstacle> {
  const server = runPostgres(cluster.postgres, argumentsFor(cluster, options), {
    prefix: cluster.prefix,
    // Ctrl-C must not stop the database before the application has drained (D2).
    detached: true,
    // PostgreSQL takes the pid named here for its own launcher and ignores a lock that contains it. This is safer than
    // deleting the file, which a server started at the same moment may just have written.
    env: options.stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(options.stalePid) },
  });
  const outcome = await untilReady(server, cluster.dataDir, options.deadline);
  if (outcome === 'ready' && server.pid !== undefined) return startedServer(server, server.pid, options.port);
  if (outcome === 'late') await giveUp(server);
  return obstacleIn(server.lastWords()) ?? failed(`PostgreSQL did not start: ${server.lastWords()}`);
}

/** The error when an obstacle persists. */
export function obstacleError(
  obstacle: Obstacle,
  cluster: Cluster,
  fixedPort: number | undefined,
): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    obstacle === 'port-taken'
      ? `port ${fixedPort ?? '(any)'} on ${HOST} is already in use by another program`
      : `${cluster.dataDir} is locked by another PostgreSQL server that does not respond`,
  );
}

function startedServer(server: PostgresProcess, pid: number, port: number): RunningServer {
  return {
    port,
    ended: server.ended.then((end) => `PostgreSQL stopped (${end.how}) ${server.fatalWords()}`.trim()),
    stop: () => shutDown(pid, server.ended),
  };
}

function argumentsFor(cluster: Cluster, options: ServerOptions): string[] {
  const settings = {
    ...DEFAULT_SETTINGS,
    unix_socket_directories: socketDirectoryOf(cluster.dataDir),
    ...options.settings,
    [STARTED_BY]: process.pid,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return ['-D', cluster.dataDir, '-p', String(options.port), ...flags];
}

async function untilReady(
  server: PostgresProcess,
  dataDir: string,
  deadline: number,
): Promise<'ready' | 'ended' | 'late'> {
  while (!server.hasEnded()) {
    const lock = await readLock(dataDir);
    if (lock?.status === 'ready' && lock.pid === server.pid) return 'ready';
    if (Date.now() > deadline) return 'late';
    await sleep(POLL_MS);
  }
  return 'ended';
}

async function giveUp(server: PostgresProcess): Promise<never> {
  if (server.pid !== undefined) await shutDown(server.pid, server.ended, 'SIGQUIT');
  return failed(`PostgreSQL was not ready in time: ${server.lastWords() || 'no output'}`);
}

function obstacleIn(lastWords: string): Obstacle | undefined {
  return OBSTACLES.find(([pattern]) => pattern.test(lastWords))?.[1];
}

function failed(message: string): never {
  throw new EmbeddedPostgresError(message);
}

const ADOPTION_POLL_MS = 250;
const CONNECT_TIMEOUT_MS = 2_000;
/** SQLSTATEs of a server that is starting up, shutting down or restarting after a crash. */
const OPERATOR_INTERVENTION = /^57P/;
/** SQLSTATE of a wrong password. */
const INVALID_PASSWORD = '28P01';

/**
 * Adopts a running server of this cluster, after querying which data it serves. While the process that started it
 * lives, the server is shared: `stop` then leaves it running.
 * @returns undefined when it is starting, stopping or already gone: check again a little later
 * @throws EmbeddedPostgresError when it rejects the stored password or serves other data
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
  // It may have begun to stop in the meantime.
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
 * Resolves when a server that is not a child of this process has ended. It polls, because the system notifies only the
 * parent.
 * @param signal once aborted, the promise stays pending and polling stops
 */
export async function untilGone(pid: number, dataDir: string, signal?: AbortSignal): Promise<void> {
  while (await isPostgresOf(pid, dataDir)) {
    await sleep(ADOPTION_POLL_MS, undefined, signal && { signal }).catch(() => {});
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
  // Without a listener, a connection that breaks between two calls would crash the process.
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
  const reason = error.code === INVALID_PASSWORD ? 'it rejects the stored password' : oneLine(error);
  throw new EmbeddedPostgresError(
    `the PostgreSQL server (pid ${lock.pid}) of ${cluster.dataDir} cannot be used: ${reason}`,
    { cause: error },
  );
}

/**
 * Grace period in milliseconds for a server that neither serves nor stops. Ending it too early loses nothing, because
 * committed data is on disk.
 */
const TIME_LIMIT_MS = 3_000;

/**
 * Ends a server that has outlived its owner but neither serves nor stops. PostgreSQL 18.4 hangs like this when the
 * fast shutdown arrives while it restarts after one of its processes was killed.
 */
export class HungServerWatch {
  private readonly dataDir: string;
  private suspect = { pid: 0, since: 0 };

  constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  /** Call after each failed attempt to adopt the server that holds the lock. */
  async check(): Promise<void> {
    const lock = await readLock(this.dataDir);
    // A starting server may have hours of changes to recover.
    if (!lock || lock.status === 'starting') return;
    if (lock.pid !== this.suspect.pid) this.suspect = { pid: lock.pid, since: Date.now() };
    if (Date.now() - this.suspect.since < TIME_LIMIT_MS) return;
    if (!(await isPostgresOf(lock.pid, this.dataDir))) return;
    if (await hasLivingOwner(this.dataDir, lock)) return;
    await shutDown(lock.pid, untilGone(lock.pid, this.dataDir), 'SIGQUIT');
  }
}
