import type { PoolClient } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';
import { findStatements } from './source-statements.js';

const READS_OR_WRITES = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\s/;

let database: TestDatabase;
/** A session that lives through the migration, as those of a service at work do. */
let session: PoolClient;

beforeAll(async () => {
  database = await createTestDatabase();
  session = await database.pool.connect();
});

afterAll(async () => {
  session.release();
  await database.drop();
});

/** The names of the prepared statements, by the place of each in the source. */
async function prepareAll(): Promise<ReadonlyMap<string, string>> {
  const places = new Map<string, string>();
  for (const { place, texts } of findStatements()) {
    if ('dynamic' in texts) continue;
    for (const text of texts.filter((one) => READS_OR_WRITES.test(one))) {
      const name = `s${places.size}`;
      await session.query(`PREPARE ${name} AS ${text}`);
      places.set(name, place);
    }
  }
  return places;
}

/** Every table has one more column. */
async function addColumns(): Promise<void> {
  const { rows: tables } = await database.pool.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`,
  );
  for (const { name } of tables) await database.pool.query(`ALTER TABLE ${name} ADD COLUMN added int`);
}

/** What PostgreSQL says of running it once more; it plans and runs nothing. */
async function refusalOf(name: string): Promise<string | null> {
  const { rows } = await session.query<{ count: number }>(
    'SELECT coalesce(array_length(parameter_types, 1), 0) AS count FROM pg_prepared_statements WHERE name = $1',
    [name],
  );
  const parameters = Array(rows[0]!.count).fill('NULL').join(', ');
  try {
    await session.query(`EXPLAIN EXECUTE ${name} ${parameters && `(${parameters})`}`);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

it('no raw statement that a session has prepared fails when a migration adds a column', async () => {
  const places = await prepareAll();
  expect(places.size).toBeGreaterThan(80);
  await addColumns();
  const refused: string[] = [];
  for (const [name, place] of places) {
    const message = await refusalOf(name);
    if (message !== null) refused.push(`${place}: ${message}`);
  }
  expect(refused).toEqual([]);
});
