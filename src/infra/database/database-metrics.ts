import type { Pool, PoolClient } from 'pg';
import { Gauge, type Histogram, type Registry } from 'prom-client';
import type { Logger } from 'typeorm';
import { counterIn, histogramIn } from '../metrics.js';
import { sqlState } from './database-errors.js';

/** Histogram buckets from a free connection to the usual `DATABASE_POOL_WAIT_MS`. */
const WAIT_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

type Connected = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/**
 * Shows how long callers wait for a connection of `pool`, and the state of its connections. `role` names the pool: a
 * process has one per role, plus the edge's.
 */
export function watchPool(registry: Registry, role: string, pool: Pool): void {
  const waits = histogramIn(registry, {
    name: 'database_pool_wait_seconds',
    help: 'How long callers in this process waited for a connection, including callers that timed out.',
    labelNames: ['pool'],
    buckets: WAIT_SECONDS,
  });
  timeConnects(pool, waits, role);
  connectionsOf(registry).set(role, pool);
}

/** TypeORM and `pool.query` call `connect` with a callback; our own code awaits its promise. */
function timeConnects(pool: Pool, waits: Histogram<'pool'>, role: string): void {
  const connect = pool.connect.bind(pool) as {
    (): Promise<PoolClient>;
    (callback: Connected): void;
  };
  const timed = (callback?: Connected): Promise<PoolClient> | void => {
    const startedAt = performance.now();
    const observe = (): void => waits.observe({ pool: role }, (performance.now() - startedAt) / 1_000);
    if (!callback) return connect().finally(observe);
    connect((error, client, release) => {
      observe();
      callback(error, client, release);
    });
  };
  pool.connect = timed as Pool['connect'];
}

const watched = new WeakMap<Registry, Map<string, Pool>>();

/** Pools shown by one gauge of the process. */
function connectionsOf(registry: Registry): Map<string, Pool> {
  const known = watched.get(registry);
  if (known) return known;
  const pools = new Map<string, Pool>();
  watched.set(registry, pools);
  new Gauge({
    name: 'database_pool_connections',
    help: 'Connections of this process by pool and state, and callers waiting for one.',
    labelNames: ['pool', 'state'],
    registers: [registry],
    collect() {
      for (const [pool, { totalCount, idleCount, waitingCount }] of pools) {
        this.set({ pool, state: 'in_use' }, totalCount - idleCount);
        this.set({ pool, state: 'idle' }, idleCount);
        this.set({ pool, state: 'waiting' }, waitingCount);
      }
    },
  });
  return pools;
}

/** SQLSTATEs that reveal the database's state; every other one is `other`. */
const REASONS: Readonly<Record<string, string>> = {
  '57014': 'statement_timeout',
  '55P03': 'lock_timeout',
  '40P01': 'deadlock',
  '40001': 'serialization',
  '53100': 'disk_full',
  '53300': 'too_many_connections',
  '25006': 'read_only',
};
/** Errors that use cases expect and handle, such as a unique violation. */
const EXPECTED = /^(23|P0001$)/;

/** Counts failed statements by reason, as TypeORM reports them; writes no log. */
export class StatementFailures implements Logger {
  private readonly failures;

  constructor(registry: Registry) {
    this.failures = counterIn(registry, {
      name: 'database_statement_failures_total',
      help: 'Failed statements of this process by reason, without constraint violations.',
      labelNames: ['reason'],
    });
    // Start at 0, because rates and alerts need a first value.
    for (const reason of [...Object.values(REASONS), 'connection', 'other']) this.failures.inc({ reason }, 0);
  }

  logQueryError(error: string | Error): void {
    const state = sqlState(error) ?? '';
    if (EXPECTED.test(state)) return;
    const isConnection = !/^[0-9A-Z]{5}$/.test(state) || /^(08|57P)/.test(state);
    this.failures.inc({ reason: REASONS[state] ?? (isConnection ? 'connection' : 'other') });
  }

  logQuery(): void {
    // Not logged.
  }

  logQuerySlow(): void {
    // Not logged.
  }

  logSchemaBuild(): void {
    // Not logged.
  }

  logMigration(): void {
    // Not logged.
  }

  log(): void {
    // Not logged.
  }
}
