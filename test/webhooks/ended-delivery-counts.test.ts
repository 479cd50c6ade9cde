import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { dayOf, partitionName } from '../../src/infra/partition-days.js';
import { BacklogRepository } from '../../src/webhooks/worker/backlog.repository.js';
import { EndedDeliveryCounts } from '../../src/webhooks/worker/ended-delivery-counts.js';
import { ENTITIES } from '../../src/apps/process-resources.js';
import { createDataSource } from '../../src/infra/database/index.js';
import { createTestDatabase, eventually, type TestDatabase } from '../harness/index.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
import { fillTable } from '../infra/database/filled-tables.js';

const DAYS_AGO = [3, 2, 1, 0];
const ROWS_A_DAY = 20;

let database: TestDatabase;
let dataSource: DataSource;
let counts: EndedDeliveryCounts;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await createDataSource({
    url: database.url,
    poolMax: 2,
    entities: ENTITIES,
    applicationName: 'test',
  }).initialize();
  for (const days of DAYS_AGO) {
    const [from, to] = [dayOf(new Date(), -days), dayOf(new Date(), 1 - days)];
    await database.pool.query(
      `CREATE TABLE IF NOT EXISTS ${partitionOf(days)} PARTITION OF webhook_deliveries_live
       FOR VALUES FROM ('${from.toISOString()}') TO ('${to.toISOString()}')`,
    );
    await fill(days, ROWS_A_DAY, 'delivered');
  }
  for (const days of DAYS_AGO) await untilToldOf(days, ROWS_A_DAY);
});
beforeEach(() => {
  counts = new EndedDeliveryCounts(dataSource.manager);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

function partitionOf(daysAgo: number): string {
  return partitionName('webhook_deliveries_live', dayOf(new Date(), -daysAgo));
}

async function fill(daysAgo: number, rows: number, status: 'delivered' | 'failed'): Promise<void> {
  await fillTable(database.pool, 'webhook_deliveries', rows, {
    id: `'whd_${status}_${daysAgo}_' || i`,
    mode: `'live'`,
    kind: `'event'`,
    status: `'${status}'`,
    next_attempt_at: 'NULL',
    created_at: `'${dayOf(new Date(), -daysAgo).toISOString()}'::timestamptz + interval '1 hour'`,
  });
}

/** A backend reports its statistics when it is idle, up to a minute late. */
async function untilToldOf(daysAgo: number, rows: number): Promise<void> {
  await eventually(`PostgreSQL tells of the ${rows} rows of ${partitionOf(daysAgo)}`, async () => {
    const told = await database.pool.query<{ inserted: number }>(
      'SELECT pg_stat_get_tuples_inserted($1::regclass)::int AS inserted',
      [partitionOf(daysAgo)],
    );
    return told.rows[0]!.inserted === rows;
  });
}

/** Counts by status, and the partitions that were read, oldest first. */
async function read(): Promise<{
  readonly delivered: number;
  readonly failed: number;
  readonly days: string[];
}> {
  const sums = { delivered: 0, failed: 0 };
  const queries = await explainQueriesOf(dataSource, async () => {
    for (const { status, count } of await counts.read()) sums[status as 'delivered' | 'failed'] += count;
  });
  const scanned = queries.flatMap((query) => query.scanned);
  const days = scanned.filter((name) => name.startsWith('webhook_deliveries_live_p')).sort();
  return { ...sums, days };
}

describe('the count of ended deliveries in /metrics (D33)', () => {
  it('is kept per day, and an old day is not read again until it changes', async () => {
    const known = [3, 2, 1, 0].map(partitionOf);
    const first = await read();
    expect(first).toMatchObject({ delivered: ROWS_A_DAY * DAYS_AGO.length, failed: 0 });
    expect(first.days).toEqual(expect.arrayContaining(known));

    const second = await read();
    expect(second.delivered).toBe(first.delivered);
    expect(second.days).not.toContain(partitionOf(3));
    expect(second.days).not.toContain(partitionOf(2));
    expect(second.days).toEqual(expect.arrayContaining([partitionOf(1), partitionOf(0)]));

    await fill(3, 1, 'failed');
    await fill(0, 1, 'failed');
    const late = await eventually('PostgreSQL has told of the change', async () => {
      const seen = await read();
      // Today's count is exact, and an old day follows once the statistics include it.
      expect(seen.failed).toBeGreaterThanOrEqual(1);
      return seen.failed === 2 ? seen : null;
    });
    expect(late.days).toContain(partitionOf(3));
    expect(late.days).not.toContain(partitionOf(2));
  });

  it('decreases when the partition of its day is dropped', async () => {
    const before = await read();
    await database.pool.query(`DROP TABLE ${partitionOf(3)}`);
    const after = await read();
    expect(after.delivered).toBe(before.delivered - ROWS_A_DAY);
  });
});

it('finds the oldest due delivery and the open ones by index among many ended ones', async () => {
  const { pool } = database;
  await fillTable(pool, 'webhook_endpoints', 3, { id: `'whe_' || i`, enabled: 'true' });
  await fillTable(pool, 'webhook_deliveries', 40_000, {
    endpoint_id: `'whe_' || (1 + i % 3)`,
    mode: `'sandbox'`,
    status: `CASE WHEN i % 10000 = 0 THEN 'pending' ELSE 'delivered' END`,
    kind: `'event'`,
    next_attempt_at: `CASE WHEN i % 10000 = 0 THEN now() END`,
  });
  await pool.query('ANALYZE');
  const backlog = new BacklogRepository(dataSource.manager);
  const queries = await explainQueriesOf(dataSource, async () => {
    await backlog.countEndpoints();
    await backlog.oldestDueSeconds();
    await backlog.countOpen();
  });
  const read = queries.filter(({ text }) => text.includes('webhook_deliveries'));
  expect(read.length).toBeGreaterThanOrEqual(2);
  for (const { text, rows, scanned } of read) {
    // The partition of open deliveries has four rows and may be scanned.
    expect(
      scanned.filter((table) => table.startsWith('webhook_deliveries') && !table.endsWith('_open')),
      text,
    ).toEqual([]);
    expect(rows, text).toBeLessThan(100);
  }
});
