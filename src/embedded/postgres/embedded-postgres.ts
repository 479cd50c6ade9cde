import { setTimeout as sleep } from 'node:timers/promises';
import {
  adopt,
  HungServerWatch,
  type Obstacle,
  obstacleError,
  type RunningServer,
  startServer,
} from './running-server.js';
import { type Cluster, openCluster } from './cluster.js';
import { choosePort, HOST, socketParameter, storePort } from './port.js';
import { forkedProcessesOf, isPostgresOf, readLock, removeMeaninglessLock } from './postgres-process.js';

/** A PostgreSQL server owned by this process. */
export interface EmbeddedPostgres {
  /** On 127.0.0.1. An adopted server keeps its port, even if another one was requested. */
  readonly port: number;
  /**
   * A connection URL with the superuser's password, over a Unix-domain socket if possible.
   * @param database `postgres` when omitted
   */
  url(database?: string): string;
  /**
   * Stops the server: SIGINT (ends sessions and writes a checkpoint), after 8 s SIGQUIT, after 8 s more SIGKILL.
   * Resolves when the server has ended. A server that belongs to another living process keeps running.
   */
  stop(): Promise<void>;
  /** Resolves with a short text when the server ends without a call to `stop`; never rejects. */
  readonly crashed: Promise<string>;
}

export interface EmbeddedPostgresOptions {
  /**
   * Folder of the cluster, for example `./.data/postgres`. Its password is stored next to it in `<dataDir>.password`.
   */
  dataDir: string;
  /** A fixed port; undefined means the cluster's last port, or a free one. */
  port?: number;
  /** Server settings on top of the defaults, for example `{ fsync: 'off' }` in tests. */
  settings?: Record<string, string | number>;
  /** Milliseconds until a server that is not ready counts as failed; default 60,000 (crash recovery takes time). */
  startTimeoutMs?: number;
}

const START_TIMEOUT_MS = 60_000;
const RETRY_MS = 100;
/**
 * A fixed port may still belong to a killed predecessor, or already to a competing start that is about to be adopted.
 */
const PORT_RETRIES = 10;

/**
 * Starts PostgreSQL on a folder and creates the cluster if there is none. After any kill at any moment, the next start
 * recovers and keeps every committed row (D2).
 * Call it from the main thread: the server stops with the thread that started it.
 * @throws EmbeddedPostgresError with one line that says what to do
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const cluster = await openCluster(options.dataDir, options.settings?.['fsync'] !== 'off');
  const server = await adoptOrStart(cluster, options);
  // Only a convenience. Without a stored port, the next start chooses another one.
  await storePort(cluster.dataDir, server.port).catch(() => {});
  return handleOf(server, cluster);
}

/** Repeats until a server runs, because a predecessor may be dying and a competitor may be starting. */
async function adoptOrStart(cluster: Cluster, options: EmbeddedPostgresOptions): Promise<RunningServer> {
  const deadline = Date.now() + (options.startTimeoutMs ?? START_TIMEOUT_MS);
  const hungServers = new HungServerWatch(cluster.dataDir);
  for (let timesTaken = 0; ;) {
    const attempt = await attemptOnce(cluster, options, deadline);
    if (typeof attempt !== 'string') return attempt;
    timesTaken = attempt === 'port-taken' ? timesTaken + 1 : 0;
    const givenUp = options.port !== undefined && timesTaken > PORT_RETRIES;
    if (givenUp || Date.now() > deadline) throw obstacleError(attempt, cluster, options.port);
    await removeObstacle(attempt, cluster.dataDir, hungServers);
    await sleep(RETRY_MS);
  }
}

async function attemptOnce(
  cluster: Cluster,
  options: EmbeddedPostgresOptions,
  deadline: number,
): Promise<RunningServer | Obstacle> {
  const lock = await readLock(cluster.dataDir);
  if (lock && (await isPostgresOf(lock.pid, cluster.dataDir)))
    return (await adopt(cluster, lock)) ?? 'locked';
  const port = await choosePort(cluster.dataDir, options.port);
  if (port === undefined) return 'port-taken';
  return startServer(cluster, {
    port,
    settings: options.settings ?? {},
    stalePid: lock?.pid,
    deadline,
  });
}

async function removeObstacle(
  obstacle: Obstacle,
  dataDir: string,
  hungServers: HungServerWatch,
): Promise<void> {
  switch (obstacle) {
    case 'locked':
      return hungServers.check();
    case 'orphans':
      return endOrphans(dataDir);
    case 'meaningless-lock':
      return removeMeaninglessLock(dataDir);
    case 'port-taken':
      // The next attempt chooses another port.
      return;
  }
}

/**
 * Ends the sessions of a killed server. Idle ones end on their own, but one in a long computation holds the old shared
 * memory, and with it the cluster, until it finishes.
 */
async function endOrphans(dataDir: string): Promise<void> {
  const lock = await readLock(dataDir);
  if (lock && (await isPostgresOf(lock.pid, dataDir))) return;
  // Excludes servers: one may just be starting without having locked the cluster yet.
  for (const pid of await forkedProcessesOf(dataDir)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has already ended.
    }
  }
}

function handleOf(server: RunningServer, { dataDir, password }: Cluster): EmbeddedPostgres {
  const address = `postgres://postgres:${encodeURIComponent(password)}@${HOST}:${server.port}`;
  const socket = socketParameter(dataDir, server.port);
  let stopping: Promise<void> | undefined;
  return {
    port: server.port,
    url: (database = 'postgres') => `${address}/${encodeURIComponent(database)}${socket}`,
    stop: () => (stopping ??= server.stop()),
    crashed: new Promise((resolve) => {
      void server.ended.then((how) => {
        if (!stopping) resolve(how);
      });
    }),
  };
}
