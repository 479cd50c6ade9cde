import type { EventEmitter } from 'node:events';
import { createRedisBackend, setDefaultBackendFactory, type ConnectionOptions } from 'bullmq';
import { Pool } from 'pg';
import type { Logger } from 'pino';
import type { RedisAddress } from '../../config/index.js';
import { clientConfig, ServerContact } from '../database/index.js';
import { openRedis } from '../redis-client.js';
import { createRetryingPostgresBackend } from './retrying-postgres-backend.js';
import { PostgresChannel } from './signals/postgres-channel.js';
import { RedisChannel } from './signals/redis-channel.js';
import { WorkSignals } from './signals/work-signals.js';

/** BullMQ's own schema, because its table names (job, event, migration) must not collide with ours. */
export const QUEUE_SCHEMA = 'bullmq';

/** The connection shared by all queues and workers of a process, and the signals between processes. */
export interface QueueConnection {
  readonly options: ConnectionOptions;
  readonly signals: WorkSignals;
  /** Call it last, after every queue and worker has closed. */
  close(): Promise<void>;
}

export interface QueueConnectionSettings {
  readonly databaseUrl: string;
  /** URL of PostgreSQL itself: the connection that receives signals must not go through a pooler (D51). */
  readonly listenUrl: string;
  readonly redis: RedisAddress | null;
  /** Every worker pins one connection for LISTEN. A pool smaller than workers + 2 hangs silently. */
  readonly poolMax: number;
  readonly contact?: ServerContact;
  readonly logger: Logger;
}

/**
 * Selects BullMQ's backend for this process: PostgreSQL, or Redis when `REDIS_URL` is set (D1). BullMQ stores the
 * choice process-wide and `@nestjs/bullmq` has no option for it, so this must run before any queue exists.
 */
export function openQueueConnection(settings: QueueConnectionSettings): QueueConnection {
  return settings.redis === null ? openPostgres(settings) : openOnRedis(settings.redis, settings.logger);
}

/** BullMQ's statements are short, except for a burst of jobs added by a sweep. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** Every worker starts with two concurrent connections of the pool. */
const CONNECT_TIMEOUT_MS = 10_000;

function openPostgres(settings: QueueConnectionSettings): QueueConnection {
  const { databaseUrl, listenUrl, poolMax, logger, contact = new ServerContact() } = settings;
  setDefaultBackendFactory(createRetryingPostgresBackend);
  const pool = new Pool({
    ...clientConfig({
      url: databaseUrl,
      applicationName: 'partner-esim-queue',
      schema: QUEUE_SCHEMA,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      contact,
    }),
    max: poolMax,
  });
  // Each queue adds its own error listener; a pool without any would end the process on an idle error.
  pool.setMaxListeners(0);
  pool.on('error', () => undefined);
  const signals = new WorkSignals(new PostgresChannel({ pool, listenUrl, logger, contact }), logger);
  return {
    options: pool,
    signals,
    close: async () => {
      await signals.close();
      await pool.end();
    },
  };
}

function openOnRedis(address: RedisAddress, logger: Logger): QueueConnection {
  setDefaultBackendFactory(createRedisBackend);
  const redis = openRedis(address, 'wait');
  reportSentinels(redis, logger);
  const signals = new WorkSignals(new RedisChannel(redis, logger), logger);
  return {
    options: redis,
    signals,
    close: async () => {
      await signals.close();
      // quit() would wait for a server that is down.
      redis.disconnect();
    },
  };
}

/**
 * Logs each sentinel's reply. If no sentinel returns the primary, even because its name is wrong, ioredis reports only
 * that none was reachable.
 */
function reportSentinels(redis: EventEmitter, logger: Logger): void {
  let last = '';
  redis.on('sentinelError', (error: Error) => {
    if (error.message === last) return;
    last = error.message;
    logger.warn(
      { event: 'queue.sentinel_failed', err: error },
      'a sentinel did not return the address of the primary',
    );
  });
}
