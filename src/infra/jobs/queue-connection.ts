import {
  createPostgresBackend,
  createRedisBackend,
  setDefaultBackendFactory,
  type ConnectionOptions,
} from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { surviveLostConnections } from '../database/index.js';

/** BullMQ's own schema: its table names (job, event, migration) must not meet ours. */
export const QUEUE_SCHEMA = 'bullmq';

/** The connection that all queues and workers of a process share. */
export interface QueueConnection {
  readonly options: ConnectionOptions;
  /** To be called last, after every queue and worker is closed. */
  close(): Promise<void>;
}

export interface QueueConnectionSettings {
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  /** Every worker pins one connection for LISTEN; fewer than workers + 2 hang in silence. */
  readonly poolMax: number;
}

/**
 * Chooses BullMQ's backend for this process: PostgreSQL, or Redis when `REDIS_URL` is set (D1). BullMQ keeps the
 * choice process-wide and `@nestjs/bullmq` has no option for it, so this must run before any queue exists.
 */
export function openQueueConnection(settings: QueueConnectionSettings): QueueConnection {
  return settings.redisUrl === null ? openPostgres(settings) : openRedis(settings.redisUrl);
}

function openPostgres({ databaseUrl, poolMax }: QueueConnectionSettings): QueueConnection {
  setDefaultBackendFactory(createPostgresBackend);
  const pool = new Pool({
    connectionString: databaseUrl,
    max: poolMax,
    keepAlive: true,
    application_name: 'partner-esim-queue',
    options: `-c search_path=${QUEUE_SCHEMA}`,
  });
  // Each queue adds an error listener of its own; a pool without any would end the process on an idle error.
  pool.setMaxListeners(0);
  pool.on('error', () => undefined);
  surviveLostConnections(pool);
  return { options: pool, close: () => pool.end() };
}

function openRedis(url: string): QueueConnection {
  setDefaultBackendFactory(createRedisBackend);
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  // quit() would wait for a server that is away.
  return { options: redis, close: () => Promise.resolve(redis.disconnect()) };
}
