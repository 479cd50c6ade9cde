import { Pool, type PoolConfig } from 'pg';
import { surviveLostConnections } from './database.module.js';

const MAX = 4;
const QUERY_TIMEOUT_MS = 4_000;

export interface EdgePoolSettings {
  readonly url: string;
  /** A pooler in transaction mode: neither start-up options nor statements that are prepared once for a session. */
  readonly isPooled: boolean;
  readonly waitMs: number;
  readonly applicationName: string;
}

/** Without names: what was prepared in one server session is not known in the next. */
class UnpreparedPool extends Pool {
  constructor(config: PoolConfig) {
    super(config);
    const query = super.query.bind(this) as (...parameters: unknown[]) => unknown;
    this.query = ((first: unknown, ...others: unknown[]) =>
      query(hasName(first) ? { ...first, name: undefined } : first, ...others)) as Pool['query'];
  }
}

function hasName(query: unknown): query is { readonly name: string } {
  return typeof query === 'object' && query !== null && 'name' in query;
}

/** The small pool for the two statements that every call runs. */
export function openEdgePool({ url, isPooled, waitMs, applicationName }: EdgePoolSettings): Pool {
  const config: PoolConfig = {
    connectionString: url,
    max: MAX,
    keepAlive: true,
    connectionTimeoutMillis: waitMs,
    // One statement is under way at a time: one that hangs must not hold every caller of the port.
    query_timeout: QUERY_TIMEOUT_MS,
    application_name: applicationName,
  };
  const pool = isPooled
    ? new UnpreparedPool(config)
    : new Pool({ ...config, statement_timeout: QUERY_TIMEOUT_MS });
  surviveLostConnections(pool);
  return pool;
}
