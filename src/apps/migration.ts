import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { runMigrations } from 'bullmq';
import type { DataSource } from 'typeorm';
import { MIGRATIONS } from '../../migrations/index.js';
import { CatalogChangesRepository, CatalogRepository, SandboxCatalogSeed } from '../catalog/index.js';
import {
  assertSession,
  createDatabaseClient,
  createDataSource,
  poolOf,
  ServerContact,
  Transactions,
} from '../infra/database/index.js';
import { QUEUE_SCHEMA } from '../infra/jobs/index.js';
import { ensurePartitions } from './partitions.js';
import { ENTITIES } from './process-resources.js';
import { refuseUnreleasedSchema, type SchemaAge } from './schema-age.js';

/** An arbitrary number that identifies this lock among the database's advisory locks. */
const MIGRATION_LOCK = 7_302_113;

export interface MigrationReport {
  readonly migrations: readonly string[];
  readonly packages: number;
}

/**
 * Migrates a database: BullMQ's schema, ours, the partitions of the next days, and this release's Sandbox catalog.
 * Several processes may call it concurrently: TypeORM takes no lock of its own, so one lock covers everything.
 * @throws Error, before any change, if the database belongs to an unreleased version or its sessions lack required
 * settings; Error if the lock's connection is lost
 */
export async function migrateDatabase(databaseUrl: string): Promise<MigrationReport> {
  const contact = new ServerContact();
  const lock = createDatabaseClient({
    url: databaseUrl,
    applicationName: 'partner-esim-migrate',
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    statementTimeoutMs: LOCK_STATEMENT_TIMEOUT_MS,
    hasHeartbeat: true,
    contact,
  });
  await lock.connect();
  let loss: Error | null = null;
  lock.once('error', (error: Error) => {
    loss = error;
    // Without the lock another process may begin, so this one must send no further statement.
    contact.closeUnheard(performance.now(), error);
  });
  try {
    await assertSession(lock);
    await waitForTurn(lock);
    await refuseUnreleasedSchema(async (text) => (await lock.query<SchemaAge>(text)).rows);
    const report = await migrateSchemas(databaseUrl, contact);
    // Fails when the lock was lost.
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]);
    return report;
  } catch (error) {
    throw loss === null ? error : lostConnection(loss);
  } finally {
    await lock.end();
  }
}

function lostConnection(loss: Error): Error {
  return new Error(
    `the connection to the database was lost (${loss.message}). Run the migration again once the database is reachable; ` +
      'it continues after the last finished step',
    { cause: loss },
  );
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The lock's own statements take milliseconds. */
const LOCK_STATEMENT_TIMEOUT_MS = 10_000;
const LOOK_EVERY_MS = 200;

/** Polls, because a waiting statement holds a snapshot, and CREATE INDEX CONCURRENTLY waits for snapshots to end. */
async function waitForTurn(lock: Client): Promise<void> {
  for (;;) {
    const { rows } = await lock.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
      MIGRATION_LOCK,
    ]);
    if (rows[0]!.taken) return;
    await sleep(LOOK_EVERY_MS);
  }
}

/**
 * A statement that waits for a lock blocks all later statements on the same table. So a migration gives up after this
 * time and has to be started again. Building an index concurrently blocks nothing while it waits; such migrations set
 * their own timeout.
 */
const LOCK_TIMEOUT_MS = 1_000;

/** Opens the connections for migrations; the caller destroys them. Their statements may run indefinitely. */
export async function openForMigrations(
  databaseUrl: string,
  contact = new ServerContact(),
): Promise<DataSource> {
  return createDataSource({
    url: databaseUrl,
    poolMax: 2,
    // Building an index on a large table may take any time.
    statementTimeoutMs: 0,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    applicationName: 'partner-esim-migrate',
    lockTimeoutMs: LOCK_TIMEOUT_MS,
    contact,
  }).initialize();
}

async function migrateSchemas(databaseUrl: string, contact: ServerContact): Promise<MigrationReport> {
  const dataSource = await openForMigrations(databaseUrl, contact);
  try {
    await migrateQueue(dataSource);
    const done = await dataSource.runMigrations();
    await ensurePartitions(dataSource);
    return { migrations: done.map((migration) => migration.name), packages: await seedCatalog(dataSource) };
  } finally {
    await dataSource.destroy();
  }
}

/** BullMQ's migrations need one connection, not a pool. */
async function migrateQueue(dataSource: DataSource): Promise<void> {
  const client = await poolOf(dataSource).connect();
  try {
    await runMigrations(client, QUEUE_SCHEMA);
  } finally {
    client.release();
  }
}

async function seedCatalog(dataSource: DataSource): Promise<number> {
  const changes = new CatalogChangesRepository(dataSource.manager);
  return new SandboxCatalogSeed(
    new Transactions(dataSource),
    new CatalogRepository(dataSource.manager, changes),
  ).run();
}
