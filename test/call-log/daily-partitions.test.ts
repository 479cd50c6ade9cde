import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pino } from 'pino';
import type { DataSource } from 'typeorm';
import { IdempotencyPurge } from '../../src/call-log/index.js';
import { CallRowWriter } from '../../src/call-log/call-row-writer.js';
import { CallRowsRepository } from '../../src/call-log/call-log.repository.js';
import { newId } from '../../src/common/ids.js';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import { IdempotencyKeysRepository } from '../../src/infra/idempotency/index.js';
import { DailyPartitions } from '../../src/infra/daily-partitions.js';
import { Sweeps } from '../../src/infra/sweeps.js';
import { createTestDatabase, eventually, openPool, type TestDatabase } from '../harness/index.js';
import { finishedCall } from './finished-call.js';

const DAY_MS = 86_400_000;
const RETENTION_DAYS = 30;
const CALLS = { table: 'api_calls', ranges: 'times', retentionDays: RETENTION_DAYS } as const;

let database: TestDatabase;
let dataSource: DataSource;
let partitions: DailyPartitions;

beforeEach(async () => {
  database = await createTestDatabase();
  dataSource = await createDataSource({
    url: database.url,
    poolMax: 10,
    poolWaitMs: 20_000,
    entities: [],
    applicationName: 'test',
  }).initialize();
  partitions = new DailyPartitions(dataSource.manager, new Transactions(dataSource));
  // The migration created partitions. After a week of downtime a database has none for today.
  for (const name of await existing()) await database.pool.query(`DROP TABLE ${name}`);
});

afterEach(async () => {
  await dataSource.destroy();
  await database.drop();
});

const midnight = (days: number) => new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS + days * DAY_MS);
const partitionOf = (days: number) =>
  `api_calls_p${midnight(days).toISOString().slice(0, 10).replaceAll('-', '')}`;
const expected = () => [-1, 0, 1, 2, 3, 4, 5, 6, 7].map(partitionOf).sort();

async function existing(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'api_calls'::regclass ORDER BY 1`,
  );
  return rows.map((row) => row.name).sort();
}

/** Writes the given number of rows for each day relative to today. */
async function writeRows(...ages: { days: number; rows: number }[]): Promise<void> {
  for (const { days, rows } of ages) {
    await database.pool.query(
      `INSERT INTO api_calls (request_id, method, path, status, latency_ms, remote_address, created_at)
       SELECT $1 || n, 'GET', '/', 200, 1, '', $2 FROM generate_series(1, $3::int) AS n`,
      [newId('req'), new Date(midnight(days).getTime() + 3_600_000), rows],
    );
  }
}

/** Row counts by partition. */
async function placed(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ place: string; n: number }>(
    'SELECT tableoid::regclass::text AS place, count(*)::int AS n FROM api_calls GROUP BY 1',
  );
  return Object.fromEntries(rows.map((row) => [row.place, row.n]));
}

/** Creates a day's partition, as an earlier run would have. */
async function addPartition(days: number): Promise<void> {
  await database.pool.query(
    `CREATE TABLE ${partitionOf(days)} PARTITION OF api_calls
     FOR VALUES FROM ('${midnight(days).toISOString()}') TO ('${midnight(days + 1).toISOString()}')`,
  );
}

const INSERT_CALL = `INSERT INTO api_calls (request_id, method, path, status, latency_ms, remote_address, created_at)
  VALUES ($1, 'GET', '/', 200, 1, '', now())`;

describe('daily partitions', () => {
  it('creates partitions from yesterday through seven days ahead, once', async () => {
    const first = await partitions.maintain(CALLS);
    expect(await existing()).toEqual(expected());
    expect(first).toEqual({ created: expected(), dropped: [] });
    expect(await partitions.maintain(CALLS)).toEqual({ created: [], dropped: [] });
  });

  it('creates each partition once when five workers start at the same time', async () => {
    const results = await Promise.all(Array.from({ length: 5 }, () => partitions.maintain(CALLS)));
    expect(await existing()).toEqual(expected());
    expect(results.flatMap((changes) => changes.created).sort()).toEqual(expected());
  });

  it('creates them all even if the process gets no CPU for seconds midway', async () => {
    const { logger } = dataSource;
    const held = vi.spyOn(logger, 'logQuery').mockImplementation((text) => {
      if (!text.startsWith(`CREATE TABLE ${partitionOf(0)}`)) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
    });
    expect((await partitions.maintain(CALLS)).created).toEqual(expected());
    expect(held.mock.calls.some(([text]) => text.startsWith(`CREATE TABLE ${partitionOf(0)}`))).toBe(true);
  });

  it('creates partitions with the same indexes as the table', async () => {
    await partitions.maintain(CALLS);
    const { rows } = await database.pool.query(
      `SELECT i.inhparent::regclass::text AS parent FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indexrelid
       WHERE x.indrelid = '${partitionOf(1)}'::regclass ORDER BY 1`,
    );
    const table = await database.pool.query(
      `SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = 'api_calls'::regclass ORDER BY 1`,
    );
    expect(rows.map((row) => row.parent)).toEqual(table.rows.map((row) => row.name));
    expect(rows.length).toBeGreaterThan(1);
  });

  it('accepts a late row for an old day as long as the day is kept', async () => {
    await addPartition(-RETENTION_DAYS);
    await partitions.maintain(CALLS);
    await writeRows({ days: -RETENTION_DAYS, rows: 3 });
    expect(await placed()).toEqual({ [partitionOf(-RETENTION_DAYS)]: 3 });
  });

  it('drops a partition when every row is older than the retention, and not a day earlier', async () => {
    for (const days of [-RETENTION_DAYS - 2, -RETENTION_DAYS - 1, -RETENTION_DAYS]) await addPartition(days);
    const changes = await partitions.maintain(CALLS);
    expect(changes.dropped).toEqual([partitionOf(-RETENTION_DAYS - 2), partitionOf(-RETENTION_DAYS - 1)]);
    expect(await existing()).toEqual([...expected(), partitionOf(-RETENTION_DAYS)].sort());
  });

  it('keeps a partition that is still needed, and reattaches one that turns out to be needed while detached', async () => {
    const old = partitionOf(-RETENTION_DAYS - 1);
    await addPartition(-RETENTION_DAYS - 1);
    await writeRows({ days: -RETENTION_DAYS - 1, rows: 2 });
    const asked: string[] = [];
    const answers = [true, false, true];
    const isNeeded = (_manager: unknown, name: string) => (
      asked.push(name),
      Promise.resolve(answers.shift()!)
    );
    const first = await partitions.maintain({ ...CALLS, isNeeded });
    expect({ first: first.dropped, asked }).toEqual({ first: [], asked: [old] });
    const second = await partitions.maintain({ ...CALLS, isNeeded });
    expect({ second: second.dropped, asked }).toEqual({ second: [], asked: [old, old, old] });
    expect(await placed()).toEqual({ [old]: 2 });
  });

  it('drops a partition despite a long-running reader: nobody waits, and a later run finishes', async () => {
    await addPartition(-RETENTION_DAYS - 1);
    await partitions.ensure(CALLS);
    const reader = await database.pool.connect();
    await reader.query('BEGIN; SELECT count(*) FROM api_calls');
    const writer = await database.pool.connect();
    // DETACH waits for two seconds. An insert that queues behind it fails, but a slow one does not.
    await writer.query(`SET lock_timeout = '1s'`);
    const dropping = partitions.maintain(CALLS).catch((error: Error) => error.message);
    let inserts = 0;
    let waiting = true;
    void dropping.finally(() => (waiting = false));
    while (waiting) {
      await writer.query(INSERT_CALL, [newId('req')]);
      inserts++;
    }
    writer.release(true);
    expect(await dropping).toContain('lock timeout');
    expect(inserts).toBeGreaterThan(0);
    await reader.query('COMMIT');
    reader.release();
    expect((await partitions.maintain(CALLS)).dropped).toEqual([partitionOf(-RETENTION_DAYS - 1)]);
    expect(await existing()).toEqual(expected());
  });

  it("waits for a partition's vacuum in short attempts, so that the server does not cancel it, and then drops the partition", async () => {
    await addPartition(-RETENTION_DAYS - 1);
    await partitions.ensure(CALLS);
    const old = partitionOf(-RETENTION_DAYS - 1);
    const vacuum = await database.pool.connect();
    // VACUUM holds this lock.
    await vacuum.query(`BEGIN; LOCK TABLE ${old} IN SHARE UPDATE EXCLUSIVE MODE`);
    const dropping = partitions.maintain(CALLS);
    // It is awaited below, behind waits that it may not outlast.
    dropping.catch(() => undefined);
    const waits = new Set<string>();
    await eventually('a second wait', async () => {
      const { rows } = await database.pool.query<{ since: string }>(
        `SELECT waitstart::text AS since FROM pg_locks WHERE NOT granted AND relation = '${old}'::regclass`,
      );
      for (const { since } of rows) waits.add(since);
      return waits.size > 1;
    });
    await vacuum.query('COMMIT');
    vacuum.release();
    expect((await dropping).dropped).toEqual([old]);
  });

  it('drops a partition that a process detached before it died', async () => {
    await addPartition(-RETENTION_DAYS - 1);
    const old = partitionOf(-RETENTION_DAYS - 1);
    await database.pool.query(`ALTER TABLE api_calls DETACH PARTITION ${old}`);
    expect((await partitions.maintain(CALLS)).dropped).toEqual([old]);
    const { rows } = await database.pool.query('SELECT to_regclass($1) AS old', [old]);
    expect(rows[0].old).toBeNull();
  });

  it('creates partitions while calls are written and read', async () => {
    await partitions.ensure(CALLS);
    const edge = openPool(database.url, 2);
    const writer = new CallRowWriter(new CallRowsRepository(edge), pino({ level: 'silent' }));
    let going = true;
    let written = 0;
    const traffic = (async () => {
      while (going) {
        for (let nth = 0; nth < 50; nth++) writer.add(finishedCall());
        written += 50;
        await edge.query('SELECT count(*) FROM api_calls');
      }
    })();
    for (let round = 0; round < 10; round++) {
      await partitions.maintain(CALLS);
      await database.pool.query(`DROP TABLE ${partitionOf(3)}`);
    }
    going = false;
    await traffic;
    await eventually('all are written', async () => {
      const { rows } = await database.pool.query(
        'SELECT count(DISTINCT request_id)::int AS n FROM api_calls',
      );
      return rows[0].n === written;
    });
    await writer.close();
    await edge.end();
    expect(Object.values(await placed()).reduce((sum, n) => sum + n, 0)).toBe(written);
  });

  it('accepts calls from a process whose clock is days off, and from its neighbors', async () => {
    await partitions.ensure(CALLS);
    const edge = openPool(database.url, 1);
    const days = [-40, 0, 40];
    await new CallRowsRepository(edge).insert(
      days.map((offset) => ({ ...finishedCall(), finishedAt: new Date(Date.now() + offset * DAY_MS) })),
    );
    await edge.end();
    expect(await placed()).toEqual(Object.fromEntries([-1, 0, 1].map((day) => [partitionOf(day), 1])));
  });

  it('creates the remaining partitions when a step fails, and throws the failure', async () => {
    await database.pool.query(`CREATE TABLE ${partitionOf(1)} (in_the_way int)`);
    await expect(partitions.maintain(CALLS)).rejects.toThrow('already exists');
    expect(await existing()).toEqual(expected().filter((name) => name !== partitionOf(1)));
  });

  it('refuses partition names that are not plain identifiers', async () => {
    await expect(partitions.maintain({ ...CALLS, table: 'a; DROP TABLE x' })).rejects.toThrow('plain');
  });
});

describe('the purge of idempotency keys', () => {
  it('deletes expired keys and no others', async () => {
    await database.pool.query(
      `INSERT INTO idempotency_keys (scope, key, fingerprint, request_id, expires_at)
       SELECT 'a', 'expired-' || n, '\\x'::bytea, '', now() - interval '1 second' FROM generate_series(1, 2500) AS n
       UNION ALL SELECT 'a', 'fresh', '\\x', '', now() + interval '1 hour'`,
    );
    const sweeps = new Sweeps(pino({ level: 'silent' }));
    const purge = new IdempotencyPurge(dataSource.manager, new IdempotencyKeysRepository(), sweeps);
    expect(await purge.purgeKeys()).toBe(2_500);
    const { rows } = await database.pool.query('SELECT key FROM idempotency_keys');
    expect(rows).toEqual([{ key: 'fresh' }]);
  });
});
