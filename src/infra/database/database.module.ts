import { type DynamicModule, Global, Module } from '@nestjs/common';
import { getDataSourceToken, getEntityManagerToken } from '@nestjs/typeorm';
import type { Pool } from 'pg';
import { DataSource, type DataSourceOptions, type Logger } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { DEFAULT_POOL_WAIT_MS } from '../../config/index.js';
import { clientConfig, type DatabaseClientSettings } from './database-client.js';
import { KeysetPages } from './keyset-page.js';
import { setInTransactions } from './pooled-sessions.js';
import { ServerContact } from './server-contact.js';
import { Transactions } from './transactions.js';

interface DataSourceSettings extends Omit<DatabaseClientSettings, 'connectTimeoutMs'> {
  readonly poolMax: number;
  /** Maximum wait for a connection; defaults to `DEFAULT_POOL_WAIT_MS`. */
  readonly poolWaitMs?: number;
  readonly entities: NonNullable<DataSourceOptions['entities']>;
  readonly migrations?: NonNullable<DataSourceOptions['migrations']>;
  /** Receives failed statements. */
  readonly logger?: Logger;
}

/** How long a duplicate of a running call waits for the first one's row lock (D18). */
const LOCK_TIMEOUT_MS = 5_000;

/**
 * Idle timeout of a connection. pg's default of ten seconds is shorter than the interval between two scrapes (by
 * default a minute in Prometheus). A lightly loaded process would open a dozen connections per scrape, and each backend
 * would read the catalog of a hundred partitions again.
 */
export const IDLE_CONNECTION_MS = 180_000;

/** The pool of an open DataSource. */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as PostgresDriver).master as Pool;
}

/**
 * The one DataSource of a role in a process; its Nest app receives it by value and does not destroy it. Statements wait
 * LOCK_TIMEOUT_MS for a lock unless the settings say otherwise.
 */
export function createDataSource(settings: DataSourceSettings): DataSource {
  const clientSettings: DatabaseClientSettings = {
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    connectTimeoutMs: settings.poolWaitMs ?? DEFAULT_POOL_WAIT_MS,
    ...settings,
  };
  const dataSource = new DataSource({
    type: 'postgres',
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
      ...clientConfig(clientSettings),
      max: settings.poolMax,
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      // Statements are sent immediately, and responses arrive in order (`OpenTransaction`).
      pipeline: true,
    },
  });
  if (settings.isPooled) setInTransactions(dataSource, clientSettings);
  return dataSource;
}

/**
 * Injection token of a small `pg.Pool`, separate from TypeORM's, for the two statements of every call (key check with
 * rate limit, call log): a burst of long transactions must not keep the edge from returning 401 or 429.
 */
export const EDGE_POOL = Symbol('EDGE_POOL');

/**
 * Injection token of the DataSource with this process's own sessions (`DATABASE_DIRECT_URL`), for session locks and
 * settings, which a pooler in transaction mode would leave to another client. Without a pooler it is the usual
 * DataSource.
 */
export const DIRECT_DATABASE = Symbol('DIRECT_DATABASE');

/** Passes a process's connections to a Nest app by value, so that no app can close another's. */
@Global()
@Module({})
export class DatabaseModule {
  static of(
    dataSource: DataSource,
    edgePool: Pool,
    direct: DataSource = dataSource,
    contact: ServerContact = new ServerContact(),
  ): DynamicModule {
    return {
      module: DatabaseModule,
      providers: [
        { provide: getDataSourceToken(), useValue: dataSource },
        { provide: getEntityManagerToken(), useValue: dataSource.manager },
        { provide: EDGE_POOL, useValue: edgePool },
        { provide: DIRECT_DATABASE, useValue: direct },
        { provide: ServerContact, useValue: contact },
        Transactions,
        KeysetPages,
      ],
      exports: [
        getDataSourceToken(),
        getEntityManagerToken(),
        EDGE_POOL,
        DIRECT_DATABASE,
        ServerContact,
        Transactions,
        KeysetPages,
      ],
    };
  }
}
