import { Pool } from 'pg';
import { clientConfig, type DatabaseClientSettings } from './database-client.js';
import { IDLE_CONNECTION_MS } from './database.module.js';

const MAX = 4;
/** Where callers are to wait longer for a connection, a statement may take as long, too, up to a bound (D43). */
const SHORTEST_TIMEOUT_MS = 4_000;
const LONGEST_TIMEOUT_MS = 10_000;

export type EdgePoolSettings = Omit<
  DatabaseClientSettings,
  'statementTimeoutMs' | 'lockTimeoutMs' | 'isBrief'
>;

/** The small pool for the two statements that every call runs. */
export function openEdgePool(settings: EdgePoolSettings): Pool {
  const { connectTimeoutMs } = settings;
  // One statement is under way at a time: one that hangs must not hold every caller of the port.
  const statementTimeoutMs = Math.min(Math.max(SHORTEST_TIMEOUT_MS, connectTimeoutMs), LONGEST_TIMEOUT_MS);
  return new Pool({
    ...clientConfig({ ...settings, statementTimeoutMs, isBrief: true }),
    max: MAX,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
  });
}
