import { createRedisBackend, setDefaultBackendFactory, type ConnectionOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import type { Logger } from 'pino';
import { surviveLostConnections } from '../database/index.js';
import { createRetryingPostgresBackend } from './retrying-postgres-backend.js';
import { PostgresChannel } from './signals/postgres-channel.js';
import { RedisChannel } from './signals/redis-channel.js';
import { WorkSignals } from './signals/work-signals.js';

/** BullMQ's own schema: its table names (job, event, migration) must not meet ours. */
export const QUEUE_SCHEMA = 'bullmq';

/** The connection that all queues and workers of a process share, and the signals between processes. */
export interface QueueConnection {
  readonly options: ConnectionOptions;
  readonly signals: WorkSignals;
  /** To be called last, after every queue and worker is closed. */
  close(): Promise<void>;
}

export interface QueueConnectionSettings {
  readonly databaseUrl: string;
  /** Of PostgreSQL itself: the connection that hears signals must not go through a pooler (D51). */
  readonly listenUrl: string;
  readonly redisUrl: string | null;
  /** Every worker pins one connection for LISTEN; fewer than workers + 2 hang in silence. */
  readonly poolMax: number;
  readonly logger: Logger;
}

/**
 * Chooses BullMQ's backend for this process: PostgreSQL, or Redis when `REDIS_URL` is set (D1). BullMQ keeps the
 * choice process-wide and `@nestjs/bullmq` has no option for it, so this must run before any queue exists.
 */
export function openQueueConnection(settings: QueueConnectionSettings): QueueConnection {
  return settings.redisUrl === null ? openPostgres(settings) : openRedis(settings.redisUrl, settings.logger);
}

function openPostgres({ databaseUrl, listenUrl, poolMax, logger }: QueueConnectionSettings): QueueConnection {
  setDefaultBackendFactory(createRetryingPostgresBackend);
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
  const signals = new WorkSignals(new PostgresChannel({ pool, listenUrl, logger }), logger);
  return {
    options: pool,
    signals,
    close: async () => {
      await signals.close();
      await pool.end();
    },
  };
}

function openRedis(url: string, logger: Logger): QueueConnection {
  setDefaultBackendFactory(createRedisBackend);
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  const signals = new WorkSignals(new RedisChannel(redis), logger);
  return {
    options: redis,
    signals,
    close: async () => {
      await signals.close();
      // quit() would wait for a server that is away.
      redis.disconnect();
    },
  };
}
