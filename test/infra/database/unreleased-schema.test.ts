import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateDatabase } from '../../../src/apps/migration.js';
import { describeStartError, startRole } from '../../../src/apps/role-process.js';
import { loadConfig } from '../../../src/config/index.js';
import { createTestDatabase, type TestDatabase, testEnvironment } from '../../harness/index.js';

const REFUSAL =
  'this database was created by an unreleased version, whose table `events` has no partitions, and cannot be upgraded: ' +
  'use an empty database (for `npm start` without DATABASE_URL, another DATA_DIR)';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  // The schema that migration 5 once created, without the last migration.
  await database.pool.query(`
    DROP TABLE events;
    CREATE TABLE events (id text PRIMARY KEY, partner_id text NOT NULL, mode text NOT NULL, body text NOT NULL);
    DELETE FROM schema_migrations WHERE timestamp = (SELECT max(timestamp) FROM schema_migrations)`);
});
afterAll(() => database.drop());

const migrationsRun = async (): Promise<number> =>
  (await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM schema_migrations')).rows[0]!.n;

describe('a database from an unreleased version', () => {
  it('is refused for columns with language-dependent sorting', async () => {
    const older = await createTestDatabase();
    await older.pool.query('ALTER TABLE events ALTER COLUMN partner_id TYPE text COLLATE "default"');
    await expect(migrateDatabase(older.url)).rejects.toThrow('whose columns are ordered by language');
    await older.drop();
  });

  it('is neither migrated nor changed', async () => {
    const before = await migrationsRun();
    await expect(migrateDatabase(database.url)).rejects.toThrow(new Error(REFUSAL));
    expect(await migrationsRun()).toBe(before);
  });

  it('lets no role start, with one sentence that explains it', async () => {
    const started = startRole('api', loadConfig(testEnvironment(database.url)));
    await expect(started.then((running) => running.stop(), describeStartError)).resolves.toBe(
      `cannot start: ${REFUSAL}`,
    );
  });
});
