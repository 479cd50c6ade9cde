import type { EnvReader } from './env-reader.js';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A token bucket of `burst` that refills at `perMinute`. */
export interface RateLimitConfig {
  readonly perMinute: number;
  readonly burst: number;
}

/** Milliseconds after which PostgreSQL cancels a statement, by sender (D43). */
export interface StatementTimeouts {
  /** Longer than a duplicate's wait for the first call (D18). */
  readonly apiMs: number;
  readonly adminMs: number;
  readonly workerMs: number;
  /** Limit of one reconciliation check. */
  readonly reconcileMs: number;
}

/** Socket limits per port. */
export interface SocketConfig {
  /** How long a caller may leave response bytes unread. */
  readonly writeTimeoutMs: number;
  readonly maxConnections: number;
  /** Null: no limit. Not applied to ports behind a proxy. */
  readonly maxConnectionsPerAddress: number | null;
}

export function readStatementTimeouts(read: EnvReader): StatementTimeouts {
  const range = { min: 100, max: 86_400_000 };
  return {
    apiMs: read.integer('DATABASE_STATEMENT_TIMEOUT_MS', 8_000, range),
    adminMs: read.integer('DATABASE_STATEMENT_TIMEOUT_ADMIN_MS', 30_000, range),
    workerMs: read.integer('DATABASE_STATEMENT_TIMEOUT_WORKER_MS', 15_000, range),
    reconcileMs: read.integer('DATABASE_STATEMENT_TIMEOUT_RECONCILE_MS', 600_000, range),
  };
}

export function readSocketConfig(read: EnvReader): SocketConfig {
  return {
    writeTimeoutMs: read.integer('HTTP_WRITE_TIMEOUT_MS', 20_000, { min: 100, max: 600_000 }),
    maxConnections: read.integer('HTTP_MAX_CONNECTIONS', 4_096, { min: 1, max: 1_000_000 }),
    maxConnectionsPerAddress:
      read.integer('HTTP_MAX_CONNECTIONS_PER_ADDRESS', 2_048, { min: 0, max: 1_000_000 }) || null,
  };
}
