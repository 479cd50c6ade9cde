import type { Logger } from 'pino';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import type { AppConfig } from '../config/index.js';
import { createDataSource, openDataSource, surviveLostConnections } from '../infra/database/index.js';
import { createLogger } from '../infra/logging.js';
import { openQueueConnection, type QueueConnection } from '../infra/jobs/index.js';
import { ENTITIES } from './entities.js';
import { ensurePartitions } from './partitions.js';

export type Role = 'api' | 'admin' | 'worker' | 'all';
/** A role, or a command that ends by itself. */
export type ProcessName = Role | 'reconcile';

/** What a process opens once and gives to each of its apps by value. */
export interface ProcessResources {
  readonly role: ProcessName;
  readonly config: AppConfig;
  readonly logger: Logger;
  readonly dataSource: DataSource;
  readonly edgePool: Pool;
  readonly queue: QueueConnection;
  /** What `/metrics` shows. */
  readonly metrics: Registry;
  /** To be called after every app is closed. */
  close(): Promise<void>;
}

const EDGE_POOL_MAX = 4;
const EDGE_QUERY_TIMEOUT_MS = 4_000;
/** Every worker pins one connection of the queue's pool for LISTEN; fewer than workers + 2 hang. */
const QUEUE_POOL_MAX = 8;

/** Opens the connections of a process. @throws Error when the database is away or its schema is not current. */
export async function openProcess(
  config: AppConfig,
  role: ProcessName,
  logger?: Logger,
): Promise<ProcessResources> {
  const dataSource = createDataSource({
    url: config.databaseUrl,
    poolMax: config.databasePoolMax,
    poolWaitMs: config.databasePoolWaitMs,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    applicationName: `partner-esim-${role}`,
  });
  await openDataSource(dataSource);
  await assertSchemaIsCurrent(dataSource);
  await ensurePartitions(dataSource, config.retention);
  const edgePool = new Pool({
    connectionString: config.databaseUrl,
    max: EDGE_POOL_MAX,
    keepAlive: true,
    connectionTimeoutMillis: config.databasePoolWaitMs,
    // One statement is under way at a time: one that hangs must not hold every caller of the port.
    query_timeout: EDGE_QUERY_TIMEOUT_MS,
    application_name: `partner-esim-${role}-edge`,
  });
  surviveLostConnections(edgePool);
  const log = logger ?? createLogger(config.logLevel, role);
  // An idle connection that the server closes is no reason to end the process.
  edgePool.on('error', (error) =>
    log.warn({ event: 'database.connection_lost', err: error }, 'connection lost'),
  );
  const queue = openQueueConnection({
    databaseUrl: config.databaseUrl,
    redisUrl: config.redisUrl,
    poolMax: QUEUE_POOL_MAX,
  });
  return {
    role,
    config,
    logger: log,
    dataSource,
    edgePool,
    queue,
    metrics: new Registry(),
    close: async () => {
      await queue.close();
      await edgePool.end();
      await dataSource.destroy();
      log.flush();
    },
  };
}

async function assertSchemaIsCurrent(dataSource: DataSource): Promise<void> {
  const pending = await dataSource.showMigrations();
  if (!pending) return;
  await dataSource.destroy();
  throw new Error('the database schema is not current: run `npm run migrate` first');
}
