import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { CarryTraceContext1763700000040 } from '../../../migrations/1763700000040-carry-trace-context.js';
import { openForMigrations } from '../../../src/apps/migration.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

let database: TestDatabase;
let source: DataSource;

beforeAll(async () => {
  database = await createTestDatabase();
  source = await openForMigrations(database.url);
});
afterAll(async () => {
  await source.destroy();
  await database.drop();
});

/** Runs the migration again, which must be idempotent. */
async function migrate(): Promise<void> {
  const runner = source.createQueryRunner();
  await new CarryTraceContext1763700000040().up(runner);
  await runner.release();
}

describe('the migration that carries trace contexts', () => {
  it('adds the column to a partition that is being detached, so that it can be attached again', async () => {
    const { rows } = await database.pool.query<{ day: string; bounds: string }>(
      `SELECT c.relname AS day, pg_get_expr(c.relpartbound, c.oid) AS bounds
       FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
       WHERE i.inhparent = 'events_live'::regclass ORDER BY c.relname LIMIT 1`,
    );
    const { day, bounds } = rows[0]!;
    await database.pool.query(`ALTER TABLE events_live DETACH PARTITION ${day}`);
    await database.pool.query(`ALTER TABLE ${day} DROP COLUMN traceparent`);
    await migrate();
    await database.pool.query(`ALTER TABLE events_live ATTACH PARTITION ${day} ${bounds}`);
  });
});
