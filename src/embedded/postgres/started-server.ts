import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.js';
import { EmbeddedPostgresError } from './errors.js';
import { HOST } from './port.js';
import { type PostgresProcess, runPostgres, shutDown } from './postgres-process.js';
import { readLock, STARTED_BY } from './processes.js';

/** A server that accepts connections, started by this process or adopted. */
export interface RunningServer {
  readonly port: number;
  /** Resolves with a short text when the server has ended, for whatever reason. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

export type ServerSettings = Readonly<Record<string, string | number>>;

/** Why a server did not start although another attempt may succeed. */
export type Obstacle = 'locked' | 'orphans' | 'meaningless-lock' | 'port-taken';

/** How one server is started. */
export interface ServerOptions {
  readonly port: number;
  readonly settings: ServerSettings;
  /** The pid in a lock of this cluster that is known to belong to somebody else now. */
  readonly stalePid: number | undefined;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
}

const DEFAULT_SETTINGS: ServerSettings = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  shared_buffers: '64MB',
  max_connections: 100,
  log_min_messages: 'warning',
  jit: 'off',
};

/** What PostgreSQL says (LC_ALL=C) when the next attempt may go better. */
const OBSTACLES: readonly [RegExp, Obstacle][] = [
  [/lock file ".*" already exists|could not remove old lock file/, 'locked'],
  [/pre-existing shared memory block/, 'orphans'],
  [/lock file ".*" is empty|bogus data in lock file/, 'meaningless-lock'],
  [/could not create any TCP\/IP sockets|Address already in use/, 'port-taken'],
];

const POLL_MS = 10;

/**
 * Starts a server on a cluster and waits until it accepts connections.
 * @throws EmbeddedPostgresError with its last words when it fails for good, or is not ready by the deadline
 */
export async function startServer(
  cluster: Cluster,
  options: ServerOptions,
): Promise<RunningServer | Obstacle> {
  const server = runPostgres(cluster.postgres, argumentsFor(cluster, options), {
    prefix: cluster.prefix,
    // Ctrl-C must not stop the database before the application has drained (D2).
    detached: true,
    // PostgreSQL takes the pid named here for its own launcher and disregards a lock that holds it. Safer than
    // deleting the file, which a server started at the same moment may just have written.
    env: options.stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(options.stalePid) },
  });
  const outcome = await untilReady(server, cluster.dataDir, options.deadline);
  if (outcome === 'ready' && server.pid !== undefined) return startedServer(server, server.pid, options.port);
  if (outcome === 'late') await giveUp(server);
  return obstacleIn(server.lastWords()) ?? failed(`PostgreSQL did not start: ${server.lastWords()}`);
}

/** What to say when the obstacle does not go away. */
export function obstacleError(
  obstacle: Obstacle,
  cluster: Cluster,
  fixedPort: number | undefined,
): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    obstacle === 'port-taken'
      ? `port ${fixedPort ?? '(any)'} on ${HOST} is already in use by another program`
      : `${cluster.dataDir} is locked by another PostgreSQL server that does not answer`,
  );
}

function startedServer(server: PostgresProcess, pid: number, port: number): RunningServer {
  return {
    port,
    ended: server.ended.then((end) => `PostgreSQL ended (${end.how}) ${server.fatalWords()}`.trim()),
    stop: () => shutDown(pid, server.ended),
  };
}

function argumentsFor(cluster: Cluster, options: ServerOptions): string[] {
  const settings = { ...DEFAULT_SETTINGS, ...options.settings, [STARTED_BY]: process.pid };
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
  return failed(`PostgreSQL was not ready in time: ${server.lastWords() || 'it said nothing'}`);
}

function obstacleIn(lastWords: string): Obstacle | undefined {
  return OBSTACLES.find(([pattern]) => pattern.test(lastWords))?.[1];
}

function failed(message: string): never {
  throw new EmbeddedPostgresError(message);
}
