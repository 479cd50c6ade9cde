import type { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ENTITIES } from '../../src/apps/process-resources.js';
import { ApiKeyAuthRepository } from '../../src/auth/api-key-auth.repository.js';
import { PurgeRateBuckets } from '../../src/auth/purge-rate-buckets.js';
import { RateBucketsRepository } from '../../src/auth/rate-buckets.repository.js';
import { createDataSource, Transactions } from '../../src/infra/database/index.js';
import {
  createTestDatabase,
  eventually,
  openPool,
  startTestService,
  type TestDatabase,
} from '../harness/index.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
import { fillTable } from '../infra/database/filled-tables.js';

const HOUR_US = 3_600_000_000;
/** No token is refilled during a test. */
const SHAPE = { burst: 5, microsecondsPerToken: HOUR_US };

let database: TestDatabase;
let edge: Pool;
let dataSource: ReturnType<typeof createDataSource>;
let charges: ApiKeyAuthRepository;

beforeAll(async () => {
  database = await createTestDatabase();
  edge = openPool(database.url, 4);
  charges = new ApiKeyAuthRepository(edge);
  const settings = { url: database.url, poolMax: 4, entities: ENTITIES, applicationName: 'test' };
  dataSource = await createDataSource(settings).initialize();
});
beforeEach(() => database.pool.query('TRUNCATE rate_buckets'));
afterAll(async () => {
  await dataSource.destroy();
  await edge.end();
  await database.drop();
});

const newPurge = () => new PurgeRateBuckets(new RateBucketsRepository(dataSource.manager));

/** @param minutes until the bucket is full; negative if it has been full for that long */
const insertBucket = (key: string, minutes: number) =>
  database.pool.query(
    `INSERT INTO rate_buckets (key, tat, t, burst, granted)
     VALUES ($1, (extract(epoch FROM now()) * 1000000)::bigint + $2::bigint * 60000000, 1, 5, 1)`,
    [key, minutes],
  );

async function bucketKeys(): Promise<string[]> {
  const { rows } = await database.pool.query<{ key: string }>('SELECT key FROM rate_buckets ORDER BY key');
  return rows.map(({ key }) => key);
}

const charge = async (key: string, calls: number) =>
  (await charges.charge(new Map([[key, calls]]), SHAPE)).get(key)!.granted;

/** Inserts buckets `i` from 1: full for an hour if `isFull` holds, otherwise only just full. */
const fill = (count: number, isFull: string) =>
  fillTable(database.pool, 'rate_buckets', count, {
    key: `'bucket ' || lpad(i::text, 6, '0')`,
    tat: `(extract(epoch FROM now()) * 1000000)::bigint - CASE WHEN ${isFull} THEN ${HOUR_US} ELSE 0 END`,
  });

describe('the purge of rate-limit buckets (D44)', () => {
  it('deletes buckets that have long been full, and none that is young, charged or dated in the future', async () => {
    await insertBucket('portal-code:2001:db8:0:1::', -11);
    await insertBucket('portal:psn_ended', -60 * 24 * 40);
    await insertBucket('key_young', -9);
    await insertBucket('key_charged', 1);
    await insertBucket('key_clock_set_back', 60 * 24);
    expect(await newPurge().purge()).toBe(2);
    expect(await bucketKeys()).toEqual(['key_charged', 'key_clock_set_back', 'key_young']);
  });

  it('runs in a worker', async () => {
    await insertBucket('portal:psn_ended', -60);
    const service = await startTestService({ role: 'worker', database });
    try {
      await eventually('it is gone', async () => !(await bucketKeys()).includes('portal:psn_ended'));
    } finally {
      await service.stop();
    }
  });

  it('pages past any number of deleted and kept buckets, and the next run resumes after them', async () => {
    await fill(6_000, 'i > 3500');
    const purge = newPurge();
    expect(await purge.purge(undefined, 2_000)).toBe(0);
    expect(await purge.purge(undefined, 2_000)).toBe(2_500);
    expect(await bucketKeys()).toHaveLength(3_500);
    await insertBucket('bucket 000000', -60);
    expect(await purge.purge(undefined, 2_000)).toBe(1);
  });

  it('reads a thousand buckets per step, however many there are (D43)', async () => {
    await fill(20_000, 'i % 10 = 0');
    await database.pool.query('ANALYZE rate_buckets');
    const queries = await explainQueriesOf(dataSource, () => newPurge().purge(undefined, 1));
    expect(queries.map(({ scanned }) => scanned)).toEqual([[], []]);
    expect(queries[0]!.rows).toBeLessThanOrEqual(2_100);
    // The full buckets of the page are read once more by key, to lock and delete them.
    expect(queries[1]!.rows).toBeLessThanOrEqual(500);
    expect(await bucketKeys()).toHaveLength(19_900);
  });
});

describe('a call during the purge', () => {
  it('does not block the purge, and keeps the bucket that it charges', async () => {
    await insertBucket('key_a', -60);
    await insertBucket('key_b', -60);
    const call = await edge.connect();
    await call.query(`BEGIN; UPDATE rate_buckets SET tat = tat WHERE key = 'key_a'`);
    const inTime = dataSource.manager.transaction(async (manager) => {
      await manager.query(`SET LOCAL lock_timeout = '1ms'`);
      return new PurgeRateBuckets(new RateBucketsRepository(manager)).purge();
    });
    expect(await inTime.finally(() => call.query('COMMIT').finally(() => call.release()))).toBe(1);
    expect(await bucketKeys()).toEqual(['key_a']);
  });

  it('finds a full bucket, and no more than that, after waiting for the deletion', async () => {
    await insertBucket('key_a', -60);
    let waiting: Promise<number>;
    await new Transactions(dataSource).run(async (tx) => {
      expect(await new RateBucketsRepository(tx.manager).deleteFull(['key_a'])).toBe(1);
      waiting = charge('key_a', 3);
      await eventually('the call waits', async () => {
        const { rowCount } = await database.pool.query(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
             AND query LIKE '%INSERT INTO rate_buckets%'`,
        );
        return rowCount === 1;
      });
    });
    expect(await waiting!).toBe(3);
    expect(await charge('key_a', 10)).toBe(2);
    expect(await charge('key_a', 1)).toBe(0);
  });

  it("keeps a bucket that it charges between the purge's read and its delete", async () => {
    await insertBucket('key_a', -60);
    const buckets = new RateBucketsRepository(dataSource.manager);
    expect(await buckets.readPage('', 10)).toEqual({ read: 1, last: 'key_a', full: ['key_a'] });
    expect(await charge('key_a', 4)).toBe(4);
    expect(await buckets.deleteFull(['key_a'])).toBe(0);
    expect(await charge('key_a', 4)).toBe(1);
  });

  it('is rate-limited exactly as without the purge', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `key_${n}`);
    await Promise.all(keys.map((key) => insertBucket(key, -60)));
    const stop = new AbortController();
    const purging = (async () => {
      const purge = newPurge();
      while (!stop.signal.aborted) await purge.purge();
    })();
    const granted = await Promise.all(
      keys.map(async (key) => {
        const calls = await Promise.all(Array.from({ length: 12 }, () => charge(key, 1)));
        return calls.reduce((sum, one) => sum + one, 0);
      }),
    );
    stop.abort();
    await purging;
    expect(granted).toEqual(keys.map(() => SHAPE.burst));
  });
});
