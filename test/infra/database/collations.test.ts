import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareText } from '../../../src/common/compare-text.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function columnOf<T>(statement: string, parameters: unknown[] = []): Promise<T[]> {
  const { rows } = await database.pool.query<{ value: T }>(statement, parameters);
  return rows.map(({ value }) => value);
}

/** Lowercase, uppercase, punctuation, digits, a non-ASCII letter, one of the last BMP characters and one beyond it. */
const TEXTS = [
  'CKH179',
  '7aa948d363',
  'Ckh179',
  'ckh179',
  'ckh-179',
  'ckh_179',
  'ckh179é',
  'ckhﬀ',
  'ckh𝒳',
  '',
  '~',
];

describe('the collation', () => {
  it('sorts by language where none is named, in the test databases', async () => {
    const inOrder = await columnOf<string>('SELECT t AS value FROM unnest($1::text[]) AS t ORDER BY t', [
      TEXTS,
    ]);
    expect(inOrder).not.toEqual([...TEXTS].sort());
  });

  it('is C for every column of every table, so that each order and each cursor compares bytes', async () => {
    const others = await columnOf<string>(
      `SELECT a.attrelid::regclass || '.' || a.attname AS value
       FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation l ON l.oid = a.attcollation
       WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
         AND NOT a.attisdropped AND l.collname <> 'C' ORDER BY 1`,
    );
    // TypeORM's own table.
    expect(others).toEqual(['schema_migrations.name']);
  });

  it('matches the comparison in the program', async () => {
    const inOrder = await columnOf<string>(
      'SELECT t AS value FROM unnest($1::text[]) AS t ORDER BY t COLLATE "C"',
      [TEXTS],
    );
    expect(TEXTS.toSorted(compareText)).toEqual(inOrder);
  });
});
