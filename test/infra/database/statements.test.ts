import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';
import { findStatements, type SourceStatement } from './source-statements.js';

/** Only these can be prepared. */
const PREPARABLE = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\s/;

let database: TestDatabase;
let statements: readonly SourceStatement[];

beforeAll(async () => {
  database = await createTestDatabase();
  statements = findStatements();
});

afterAll(() => database.drop());

it('every raw statement of the source is one that PostgreSQL prepares on the migrated schema', async () => {
  const skipped: string[] = [];
  const refused: string[] = [];
  let prepared = 0;
  for (const { place, texts } of statements) {
    if ('dynamic' in texts) {
      skipped.push(`${place}: its text depends on ${texts.dynamic}`);
      continue;
    }
    for (const text of texts) {
      if (!PREPARABLE.test(text)) {
        skipped.push(`${place}: a command that cannot be prepared`);
        continue;
      }
      try {
        await database.pool.query(`PREPARE s${prepared} AS ${text}`);
        prepared++;
      } catch (error) {
        refused.push(`${place}: ${(error as Error).message}`);
      }
    }
  }
  console.warn(`prepared ${prepared} statements; not prepared:\n${skipped.join('\n')}`);
  expect(refused).toEqual([]);
  expect(prepared).toBeGreaterThan(80);
  // Most must be seen: what a test cannot read, a reader cannot either.
  expect(skipped.length).toBeLessThan(prepared / 3);
});
