import type { Pool } from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';

export interface DataSourceSettings {
  readonly url: string;
  readonly poolMax: number;
  /** How long a caller waits for a connection; 2 s by default. */
  readonly poolWaitMs?: number;
  readonly entities: NonNullable<DataSourceOptions['entities']>;
  readonly migrations?: NonNullable<DataSourceOptions['migrations']>;
  readonly applicationName: string;
  /** How long a statement waits for a lock; 5 s by default. */
  readonly lockTimeoutMs?: number;
}

const POOL_WAIT_MS = 2_000;
/** D18: a duplicate of a running call waits this long for the first one's row lock. */
const LOCK_TIMEOUT_MS = 5_000;

/**
 * pg hands a new connection over before TypeORM or BullMQ listens for its errors: a FATAL in that gap (a server that
 * restarts) would be an uncaught exception and end the process. The pool itself replaces what was lost.
 */
export function surviveLostConnections(pool: Pool): void {
  pool.on('connect', (client) => void client.on('error', () => undefined));
}

/** Connects the DataSource. @throws Error when the database is away. */
export async function openDataSource(dataSource: DataSource): Promise<DataSource> {
  await dataSource.initialize();
  surviveLostConnections((dataSource.driver as unknown as { master: Pool }).master);
  return dataSource;
}

/** The one DataSource of a process; every Nest app of the process gets it by value and none destroys it. */
export function createDataSource(settings: DataSourceSettings): DataSource {
  return new DataSource({
    type: 'postgres',
    url: settings.url,
    entities: settings.entities,
    migrations: settings.migrations ?? [],
    migrationsTransactionMode: 'each',
    migrationsTableName: 'schema_migrations',
    synchronize: false,
    migrationsRun: false,
    installExtensions: false,
    logging: false,
    applicationName: settings.applicationName,
    invalidWhereValuesBehavior: { null: 'throw', undefined: 'throw' },
    extra: {
      max: settings.poolMax,
      connectionTimeoutMillis: settings.poolWaitMs ?? POOL_WAIT_MS,
      keepAlive: true,
      options: `-c lock_timeout=${settings.lockTimeoutMs ?? LOCK_TIMEOUT_MS} -c idle_in_transaction_session_timeout=30000`,
    },
  });
}
