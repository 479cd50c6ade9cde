import { type DynamicModule, Global, Module } from '@nestjs/common';
import { getDataSourceToken, getEntityManagerToken } from '@nestjs/typeorm';
import pg, { Client, type Pool } from 'pg';
import { DataSource, type DataSourceOptions, type Logger } from 'typeorm';
import { DEFAULT_POOL_WAIT_MS } from '../../config/index.js';
import { limitTransactions } from './pooled-sessions.js';
import { KeysetPages } from './keyset-page.js';
import { Transactions } from './transactions.js';

interface DataSourceSettings {
  readonly url: string;
  readonly poolMax: number;
  /** How long a caller waits for a connection; `DEFAULT_POOL_WAIT_MS` where no setting says. */
  readonly poolWaitMs?: number;
  /** After this PostgreSQL cancels a statement; 0, the default, never. */
  readonly statementTimeoutMs?: number;
  readonly entities: NonNullable<DataSourceOptions['entities']>;
  readonly migrations?: NonNullable<DataSourceOptions['migrations']>;
  readonly applicationName: string;
  /** How long a statement waits for a lock; LOCK_TIMEOUT_MS by default. */
  readonly lockTimeoutMs?: number;
  /** False where a pooler in between gives each transaction another connection and forgets prepared statements. */
  readonly prepared?: boolean;
  /** `url` leads to a pooler in transaction mode, which takes no start-up options: transactions set their limits. */
  readonly isPooled?: boolean;
  /** Told of statements that fail. */
  readonly logger?: Logger;
}

/** D18: a duplicate of a running call waits this long for the first one's row lock. */
const LOCK_TIMEOUT_MS = 5_000;

/**
 * An idle connection stays for so long. pg's own ten seconds are shorter than what lies between two scrapes (a minute by
 * Prometheus' default): a process with little to do would open a dozen for each, whose backends read the catalogue of a
 * hundred partitions anew.
 */
export const IDLE_CONNECTION_MS = 180_000;

/**
 * pg hands a new connection over before TypeORM or BullMQ listens for its errors: a FATAL in that gap (a server that
 * restarts) would be an uncaught exception and end the process. The pool itself replaces what was lost.
 */
export function surviveLostConnections(pool: Pool): void {
  pool.on('connect', (client) => void client.on('error', () => undefined));
}

const { query: sendQuery } = Client.prototype as { query: (...parameters: never[]) => unknown };

/** Sends the text of a named statement each time. */
const UnpreparedClient = class extends Client {};
Object.defineProperty(UnpreparedClient.prototype, 'query', {
  value(this: Client, config: unknown, ...rest: unknown[]): unknown {
    const unnamed =
      typeof config === 'object' && config !== null && 'name' in config
        ? { ...config, name: undefined }
        : config;
    return Reflect.apply(sendQuery, this, [unnamed, ...rest]);
  },
});

/** The part of a pool's options that says whether its connections prepare statements (`DATABASE_PREPARED`). */
export function preparing(on: boolean): { Client?: typeof Client } {
  return on ? {} : { Client: UnpreparedClient };
}

/** Connects the DataSource. @throws Error when the database is away. */
export async function openDataSource(dataSource: DataSource): Promise<DataSource> {
  await dataSource.initialize();
  surviveLostConnections(poolOf(dataSource));
  return dataSource;
}

/** The connections of an open DataSource. */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as unknown as { master: Pool }).master;
}

function sessionLimits(statementTimeoutMs: number, lockTimeoutMs: number): string {
  const limits = [
    `statement_timeout=${statementTimeoutMs}`,
    `lock_timeout=${lockTimeoutMs}`,
    'idle_in_transaction_session_timeout=30000',
  ];
  return limits.map((limit) => `-c ${limit}`).join(' ');
}

/** The one DataSource of a role in a process; its Nest app gets it by value and does not destroy it. */
export function createDataSource(settings: DataSourceSettings): DataSource {
  const { statementTimeoutMs = 0, lockTimeoutMs = LOCK_TIMEOUT_MS, isPooled = false } = settings;
  const dataSource = new DataSource({
    type: 'postgres',
    // Not found by its name where the libraries are one file (dist/roles).
    driver: pg,
    url: settings.url,
    entities: settings.entities,
    migrations: settings.migrations ?? [],
    migrationsTransactionMode: 'each',
    migrationsTableName: 'schema_migrations',
    synchronize: false,
    migrationsRun: false,
    installExtensions: false,
    logging: false,
    ...(settings.logger ? { logger: settings.logger } : {}),
    applicationName: settings.applicationName,
    invalidWhereValuesBehavior: { null: 'throw', undefined: 'throw' },
    extra: {
      max: settings.poolMax,
      connectionTimeoutMillis: settings.poolWaitMs ?? DEFAULT_POOL_WAIT_MS,
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      keepAlive: true,
      // Statements go out as they come, and are answered in order (`OpenTransaction`).
      pipeline: true,
      ...preparing(settings.prepared ?? true),
      ...(isPooled ? {} : { options: sessionLimits(statementTimeoutMs, lockTimeoutMs) }),
    },
  });
  if (isPooled) limitTransactions(dataSource, { statementTimeoutMs, lockTimeoutMs });
  return dataSource;
}

/**
 * Injection token of a small `pg.Pool` apart from TypeORM's, for the two statements that every call runs (key
 * check with rate limit, call log): a burst of long transactions must not keep the edge from responding 401 or 429.
 */
export const EDGE_POOL = Symbol('EDGE_POOL');

/**
 * Injection token of the DataSource whose sessions are this process's own (`DATABASE_DIRECT_URL`): for locks and settings of
 * a session, which a pooler in transaction mode would leave to somebody else. The usual DataSource where there is no pooler.
 */
export const DIRECT_DATABASE = Symbol('DIRECT_DATABASE');

/** Gives a process's connections to a Nest app by value, so that no app can close them under another. */
@Global()
@Module({})
export class DatabaseModule {
  static of(dataSource: DataSource, edgePool: Pool, direct: DataSource = dataSource): DynamicModule {
    return {
      module: DatabaseModule,
      providers: [
        { provide: getDataSourceToken(), useValue: dataSource },
        { provide: getEntityManagerToken(), useValue: dataSource.manager },
        { provide: EDGE_POOL, useValue: edgePool },
        { provide: DIRECT_DATABASE, useValue: direct },
        Transactions,
        KeysetPages,
      ],
      exports: [
        getDataSourceToken(),
        getEntityManagerToken(),
        EDGE_POOL,
        DIRECT_DATABASE,
        Transactions,
        KeysetPages,
      ],
    };
  }
}
