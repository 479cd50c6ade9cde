import { Pool, type PoolConfig } from 'pg';
import { preparing, surviveLostConnections } from './database.module.js';

const MAX = 4;
const QUERY_TIMEOUT_MS = 4_000;

export interface EdgePoolSettings {
  readonly url: string;
  /** A pooler in transaction mode takes no start-up options. */
  readonly isPooled: boolean;
  /** `DATABASE_PREPARED` */
  readonly prepared: boolean;
  readonly waitMs: number;
  readonly applicationName: string;
}

/** The small pool for the two statements that every call runs. */
export function openEdgePool({ url, isPooled, prepared, waitMs, applicationName }: EdgePoolSettings): Pool {
  const config: PoolConfig = {
    connectionString: url,
    max: MAX,
    keepAlive: true,
    connectionTimeoutMillis: waitMs,
    // One statement is under way at a time: one that hangs must not hold every caller of the port.
    query_timeout: QUERY_TIMEOUT_MS,
    ...(isPooled ? {} : { statement_timeout: QUERY_TIMEOUT_MS }),
    ...preparing(prepared),
    application_name: applicationName,
  };
  const pool = new Pool(config);
  surviveLostConnections(pool);
  return pool;
}
