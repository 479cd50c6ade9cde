import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrateDatabase } from '../../src/apps/migration.js';
import { startEmbeddedPostgres } from '../../src/embedded/postgres/index.js';
import { createTemplate } from './template-database.js';

/** Durability is off, because tests kill processes but never lose the disk. */
const TEST_SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: 0,
  // The data is in the page cache, and asking an I/O worker would cost more than the read itself.
  io_method: 'sync',
  max_connections: 400,
};

/** Starts the PostgreSQL server of all tests with the template database, and returns a function that stops it. */
export async function startTestServer(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(path.join(placeOfDatabases(), 'esim-test-'));
  const postgres = await startEmbeddedPostgres({
    dataDir: path.join(directory, 'postgres'),
    settings: TEST_SETTINGS,
  });
  await createTemplate({
    dataDir: path.join(directory, 'postgres'),
    url: (database) => postgres.url(database),
    migrate: async (databaseUrl) => void (await migrateDatabase(databaseUrl)),
  });
  project.provide('postgresUrl', postgres.url());
  const stopBacking = await provideBacking(project, postgres.url());
  return async () => {
    await stopBacking();
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  };
}

/** Puts the backend of `TEST_BACKING` under every service that the tests start. */
async function provideBacking(project: TestProject, postgresUrl: string): Promise<() => Promise<void>> {
  const name = process.env['TEST_BACKING'];
  if (name === undefined) {
    project.provide('backing', null);
    return () => Promise.resolve();
  }
  const { startBacking } = await import('./start-backing.js');
  const { backing, stop } = await startBacking(name, postgresUrl);
  project.provide('backing', backing);
  return stop;
}

const MEMORY = '/dev/shm';
const ROOM_BYTES = 6 * 1_024 ** 3;

/**
 * Uses memory if there is enough, because the tests create and drop three hundred databases of a thousand files each.
 */
function placeOfDatabases(): string {
  if (!existsSync(MEMORY) || Math.min(freemem(), process.availableMemory()) < ROOM_BYTES) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize < ROOM_BYTES ? tmpdir() : MEMORY;
}
