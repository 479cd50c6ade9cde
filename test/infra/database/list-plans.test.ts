import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ENTITIES } from '../../../src/apps/process-resources.js';
import { CursorCodec } from '../../../src/infra/crypto/index.js';
import { createDataSource } from '../../../src/infra/database/index.js';
import { createTestDatabase, type TestDatabase } from '../../harness/index.js';
import { explainQueriesOf } from './explained-queries.js';
import { type ListCase, listCases } from './list-cases.js';
import { fillListedTables, GROWING } from './list-rows.js';

const LIMIT = 25;
/** A page plus one row, in index and table, and the lookups for each row. */
const MAX_ROWS = 6 * (LIMIT + 1);

/** Excludes day partitions, because a small one may be scanned. Its rows are counted anyway. */
const isGrowing = (name: string): boolean => GROWING.includes(name);
/** Runs once a minute for all lists together. */
const OLDEST_DAY = 'pg_inherits';

type TestDataSource = ReturnType<typeof createDataSource>;

let database: TestDatabase;
let dataSource: TestDataSource;
let cases: readonly ListCase[];

beforeAll(async () => {
  database = await createTestDatabase();
  await fillListedTables(database.pool);
  const settings = {
    url: database.url,
    poolMax: 2,
    poolWaitMs: 20_000,
    entities: ENTITIES,
    applicationName: 'test',
  };
  dataSource = await createDataSource(settings).initialize();
  const secretKeys = [{ id: 'test', key: Buffer.alloc(32, 7) }];
  cases = listCases(dataSource, new CursorCodec({ secretKeys }));
});

afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

it('reads about one page for every list, whatever its filter and size (D43)', async () => {
  const costly: string[] = [];
  for (const list of cases) {
    const { name, mostRows } = list;
    let next: string | undefined;
    const work = async (): Promise<void> => {
      next = (await list.run({ limit: LIMIT, cursor: undefined })).nextCursor ?? undefined;
      if (next !== undefined) await list.run({ limit: LIMIT, cursor: next });
    };
    const queries = await explainQueriesOf(dataSource, work);
    expect(queries.length, name).toBeGreaterThan(0);
    for (const { text, scanned, rows } of queries) {
      if (text.includes(OLDEST_DAY)) continue;
      const growing = scanned.filter(isGrowing);
      if (growing.length > 0) costly.push(`${name}: reads all of ${growing.join(', ')}`);
      else if (rows > (mostRows ?? MAX_ROWS)) costly.push(`${name}: reads ${rows} rows`);
    }
  }
  expect([...new Set(costly)]).toEqual([]);
});

it('explains the list of every repository', () => {
  const listing = globSync('src/**/*.ts').filter((file) =>
    /this\.pages\.(list|search)|\.orderBy\('since'/.test(readFileSync(file, 'utf8')),
  );
  const explained = readFileSync('test/infra/database/list-cases.ts', 'utf8');
  const missing = listing.filter((file) => !explained.includes(file.replace(/\.ts$/, '.js')));
  // Its lists are those of orders and of top-ups, which have their own cases.
  expect(missing).toEqual(['src/purchases/purchases.repository.ts']);
});
