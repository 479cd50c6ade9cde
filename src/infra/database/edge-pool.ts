import { Pool, type PoolConfig } from 'pg';
import { IDLE_CONNECTION_MS, preparing, surviveLostConnections } from './database.module.js';

const MAX = 4;
/** Where callers are to wait longer for a connection, a statement may take as long, too, up to a bound (D43). */
const SHORTEST_TIMEOUT_MS = 4_000;
const LONGEST_TIMEOUT_MS = 10_000;

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
  const timeoutMs = Math.min(Math.max(SHORTEST_TIMEOUT_MS, waitMs), LONGEST_TIMEOUT_MS);
  const config: PoolConfig = {
    connectionString: url,
    max: MAX,
    keepAlive: true,
    connectionTimeoutMillis: waitMs,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    // One statement is under way at a time: one that hangs must not hold every caller of the port.
    query_timeout: timeoutMs,
    ...(isPooled ? {} : { statement_timeout: timeoutMs }),
    ...preparing(prepared),
    application_name: applicationName,
  };
  const pool = new Pool(config);
  surviveLostConnections(pool);
  return pool;
}
