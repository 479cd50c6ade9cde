import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import { endsWithin } from '../common/time-limit.js';
import { ALERT_ENTITIES } from '../alerts/index.js';
import { API_KEY_ENTITIES } from '../api-keys/index.js';
import { AUDIT_ENTITIES } from '../audit/index.js';
import { CALL_LOG_ENTITIES } from '../call-log/index.js';
import { CATALOG_SYNC_ENTITIES } from '../catalog-sync/index.js';
import { PackageEntity } from '../catalog/index.js';
import type { AppConfig } from '../config/index.js';
import { AutoTopupEntity, EsimEntity } from '../esims/index.js';
import { EventEntity } from '../events/index.js';
import { assertSecretsOpen } from '../infra/crypto/index.js';
import {
  assertSessionsOf,
  createDataSource,
  openEdgePool,
  poolOf,
  ServerContact,
  StatementFailures,
  watchPool,
} from '../infra/database/index.js';
import { openQueueConnection, type QueueConnection } from '../infra/jobs/index.js';
import { createLogger, logDestinationOf } from '../infra/logging.js';
import { openTracer, type Tracer } from '../infra/tracing/index.js';
import { INSTALL_LINK_ENTITIES } from '../install-links/index.js';
import { OrderEntity } from '../orders/index.js';
import { PARTNER_ENTITIES } from '../partners/index.js';
import { PORTAL_SESSION_ENTITIES } from '../portal-sessions/index.js';
import { REFUND_ENTITIES } from '../refunds/index.js';
import { TopupEntity } from '../topups/index.js';
import { WALLET_ENTITIES } from '../wallet/index.js';
import { WEBHOOK_ENTITIES } from '../webhooks/index.js';
import { ensurePartitions } from './partitions.js';
import { assertSchemaIsCurrent } from './schema-age.js';

/** Every entity, listed explicitly: TypeORM's globs load TypeScript and JavaScript twice. */
export const ENTITIES = [
  ...ALERT_ENTITIES,
  ...API_KEY_ENTITIES,
  ...AUDIT_ENTITIES,
  ...CALL_LOG_ENTITIES,
  ...PARTNER_ENTITIES,
  ...PORTAL_SESSION_ENTITIES,
  ...REFUND_ENTITIES,
  ...WALLET_ENTITIES,
  ...WEBHOOK_ENTITIES,
  ...CATALOG_SYNC_ENTITIES,
  ...INSTALL_LINK_ENTITIES,
  AutoTopupEntity,
  EsimEntity,
  EventEntity,
  OrderEntity,
  PackageEntity,
  TopupEntity,
];

export type Role = 'api' | 'admin' | 'portal' | 'install' | 'worker' | 'all';
/** A role, or a command that exits when its work is done. */
type ProcessName = Role | 'reconcile' | 'restore-epoch';

/** Resources that a process opens once and passes to each of its apps. */
export interface ProcessResources {
  readonly role: ProcessName;
  readonly config: AppConfig;
  readonly logger: Logger;
  /** Connections of one role: see `of`. */
  readonly dataSource: DataSource;
  readonly edgePool: Pool;
  /** All database pools of the process. */
  readonly pools: readonly Pool[];
  /** Direct sessions that bypass the pooler; without a pooler, the same as `dataSource`. */
  readonly directDataSource: DataSource;
  /** State of the server as seen by all connections of the process. */
  readonly contact: ServerContact;
  readonly queue: QueueConnection;
  /** Registry behind `/metrics`. */
  readonly metrics: Registry;
  readonly tracer: Tracer;
  /**
   * The same resources with the connections of one role, so that a waiting role cannot use up another role's
   * connections.
   */
  of(role: AppRole): ProcessResources;
  /** Call after every app has closed. */
  close(): Promise<void>;
}

/** Roles with their own app. */
export type AppRole = Exclude<ProcessName, 'all'>;

const APP_ROLES: Readonly<Record<ProcessName, readonly [AppRole, ...AppRole[]]>> = {
  api: ['api'],
  admin: ['admin'],
  portal: ['portal'],
  install: ['install'],
  worker: ['worker'],
  reconcile: ['reconcile'],
  'restore-epoch': ['restore-epoch'],
  all: ['api', 'admin', 'portal', 'install', 'worker'],
};

/** Each BullMQ worker pins one connection of the queue's pool for LISTEN. A pool smaller than workers + 2 hangs. */
const QUEUE_POOL_MAX = 8;
/** Direct connections in addition to a pooler's. Two suffice, because partitions are detached one after another. */
const DIRECT_POOL_MAX = 2;
/** Time limit for flushing spans during shutdown, while connections close. */
const LAST_SPANS_MS = 500;
/**
 * Time limit for closing the sockets of ended pools: the embedded start stops PostgreSQL next, which notifies every
 * open session.
 */
const LAST_SOCKETS_MS = 250;

/**
 * Opens a process's connections.
 * @throws Error when the database is down, its sessions lack required settings, its schema is not current, or
 * SECRETS_KEYS cannot decrypt its secrets
 */
export async function openProcess(
  config: AppConfig,
  role: ProcessName,
  logger?: Logger,
): Promise<ProcessResources> {
  const metrics = new Registry();
  const log = logger ?? createLogger(config.logLevel, role);
  const contact = new ServerContact((error) =>
    log.warn({ event: 'database.connection_closed', err: error }, 'database connection closed: not usable'),
  );
  const dataSources = await openDataSources({ config, role, metrics, contact });
  const edgePool = openEdgePool({
    url: config.databaseUrl,
    isPooled: config.databaseIsPooled,
    prepared: config.databasePrepared,
    connectTimeoutMs: config.databasePoolWaitMs,
    applicationName: `partner-esim-${role}-edge`,
    contact,
  });
  watchPool(metrics, 'edge', edgePool);
  // An idle connection that the server closes must not end the process.
  edgePool.on('error', (error) =>
    log.warn({ event: 'database.connection_lost', err: error }, 'connection lost'),
  );
  const destination = logDestinationOf(log);
  destination?.reportTo(log, metrics);
  const tracer = await openTracer({ config, role, logger: log, metrics });
  const queue = openQueueConnection({
    databaseUrl: config.databaseDirectUrl,
    listenUrl: config.databaseDirectUrl,
    redis: config.redis,
    poolMax: QUEUE_POOL_MAX,
    logger: log,
    contact,
  });
  const resources: ProcessResources = {
    role,
    config,
    logger: log,
    dataSource: dataSources.get(APP_ROLES[role][0])!,
    edgePool,
    pools: [...APP_ROLES[role].map((app) => poolOf(dataSources.get(app)!)), edgePool],
    directDataSource: directOf(dataSources, dataSources.get(APP_ROLES[role][0])!),
    contact,
    queue,
    metrics,
    tracer,
    of: (app) => {
      const dataSource = dataSources.get(app)!;
      return { ...resources, dataSource, directDataSource: directOf(dataSources, dataSource) };
    },
    close: async () => {
      const sent = tracer.close(LAST_SPANS_MS);
      await queue.close();
      await edgePool.end();
      await destroyAll(dataSources);
      await endsWithin(contact.allClosed(), LAST_SOCKETS_MS);
      await sent;
      await destination?.close();
    },
  };
  return resources;
}

/** By role, and the direct one if there is a pooler. */
type DataSources = ReadonlyMap<AppRole | 'direct', DataSource>;

function directOf(dataSources: DataSources, own: DataSource): DataSource {
  return dataSources.get('direct') ?? own;
}

interface Opening {
  readonly config: AppConfig;
  readonly role: ProcessName;
  readonly metrics: Registry;
  readonly contact: ServerContact;
}

/** One DataSource per role, with its statement timeout (D43). */
async function openDataSources({ config, role, metrics, contact }: Opening): Promise<DataSources> {
  const { apiMs, adminMs, workerMs, reconcileMs } = config.statementTimeouts;
  const timeoutMs = {
    ...{ api: apiMs, admin: adminMs, portal: apiMs, install: apiMs, worker: workerMs },
    ...{ reconcile: reconcileMs, 'restore-epoch': reconcileMs },
  };
  const opened = new Map<AppRole | 'direct', DataSource>();
  const logger = new StatementFailures(metrics);
  try {
    for (const app of APP_ROLES[role]) {
      const settings = {
        url: config.databaseUrl,
        isPooled: config.databaseIsPooled,
        poolMax: config.databasePoolMax,
        poolWaitMs: config.databasePoolWaitMs,
        statementTimeoutMs: timeoutMs[app],
        prepared: config.databasePrepared,
        entities: ENTITIES,
        migrations: MIGRATIONS,
        applicationName: role === app ? `partner-esim-${role}` : `partner-esim-${role}-${app}`,
        logger,
        contact,
      };
      const dataSource = await createDataSource(settings).initialize();
      opened.set(app, dataSource);
      watchPool(metrics, app, poolOf(dataSource));
    }
    const first = opened.get(APP_ROLES[role][0])!;
    if (config.databaseIsPooled) {
      opened.set('direct', await openDirect(config, role, contact));
      await assertSessionsOf(opened.get('direct')!);
    }
    await assertSessionsOf(first);
    await assertSchemaIsCurrent(first);
    await assertSecretsOpen((statement) => first.query<unknown[]>(statement), config.secretKeys);
    await ensurePartitions(first, config.retention);
  } catch (error) {
    await destroyAll(opened);
    throw error;
  }
  return opened;
}

function openDirect(config: AppConfig, role: ProcessName, contact: ServerContact): Promise<DataSource> {
  return createDataSource({
    url: config.databaseDirectUrl,
    poolMax: DIRECT_POOL_MAX,
    poolWaitMs: config.databasePoolWaitMs,
    statementTimeoutMs: config.statementTimeouts.workerMs,
    entities: [],
    applicationName: `partner-esim-${role}-direct`,
    contact,
  }).initialize();
}

async function destroyAll(dataSources: DataSources): Promise<void> {
  for (const dataSource of dataSources.values()) await dataSource.destroy();
}
