import { Pool } from 'pg';
import { clientConfig, type DatabaseClientSettings } from './database-client.js';
import { IDLE_CONNECTION_MS } from './database.module.js';

const MAX = 4;
/** Bounds of the statement timeout. Within them it equals the maximum wait for a connection (D43). */
const MIN_TIMEOUT_MS = 4_000;
const MAX_TIMEOUT_MS = 10_000;

export type EdgePoolSettings = Omit<
  DatabaseClientSettings,
  'statementTimeoutMs' | 'lockTimeoutMs' | 'isBrief'
>;

/** Opens the small pool for the two statements of every call. */
export function openEdgePool(settings: EdgePoolSettings): Pool {
  const { connectTimeoutMs } = settings;
  // Key checks run one statement at a time, so a hanging one must not block every caller of the port.
  const statementTimeoutMs = Math.min(Math.max(MIN_TIMEOUT_MS, connectTimeoutMs), MAX_TIMEOUT_MS);
  return new Pool({
    ...clientConfig({ ...settings, statementTimeoutMs, isBrief: true }),
    max: MAX,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
  });
}
