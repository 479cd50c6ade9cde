import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually, waitingForLocks } from '../harness/index.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { type LiveBuyer, LiveShop, PACKAGE, place, PRICE } from '../orders-live/live-shop.js';

const POOL = 4;
/** With four connections, one caller may use two for writes, and all writes together three. */
const OF_ONE_CALLER = 2;
const ORDERS = 12;

let shop: LiveShop;
let crowd: LiveBuyer;
let other: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open({ DATABASE_POOL_MAX: String(POOL), DATABASE_POOL_WAIT_MS: '1500' });
  crowd = await shop.buyer(ORDERS * PRICE);
  other = await shop.buyer(ORDERS * PRICE);
  await eventually('the connections are there', connected);
});

afterAll(() => shop.close());

/** Opens the API's connections in advance, because opening one on a busy machine may exceed a call's wait limit. */
async function connected(): Promise<boolean> {
  const { dataSource } = shop.api.process.resources.of('api');
  await Promise.allSettled(Array.from({ length: POOL }, () => dataSource.query('SELECT pg_sleep(0.1)')));
  await other.live.get('/v1/orders');
  const { rows } = await shop.database.pool.query<{ api: number; edge: number }>(
    `SELECT count(*) FILTER (WHERE application_name = 'partner-esim-api')::int AS api,
            count(*) FILTER (WHERE application_name = 'partner-esim-api-edge')::int AS edge
     FROM pg_stat_activity WHERE datname = current_database()`,
  );
  return rows[0]!.api === POOL && rows[0]!.edge > 0;
}

/** Runs `work` while another session holds this partner's wallets. */
async function withLockedWallet(partnerId: string, work: () => Promise<void>): Promise<void> {
  const client = await shop.database.pool.connect();
  try {
    await client.query('BEGIN');
    const { rowCount } = await client.query('SELECT 1 FROM wallets WHERE partner_id = $1 FOR UPDATE', [
      partnerId,
    ]);
    expect(rowCount).toBeGreaterThan(0);
    await work();
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

describe('a partner whose orders all wait for one wallet (D43)', () => {
  it('leaves connections for everybody else, and gets a 429 itself', async () => {
    const keys = Array.from({ length: ORDERS }, () => randomUUID());
    const buy = (idempotencyKey: string) =>
      crowd.live.post('/v1/orders', { package_id: PACKAGE }, { idempotencyKey });
    let first: ReturnType<typeof buy>[] = [];
    await withLockedWallet(crowd.id, async () => {
      first = keys.map(buy);
      await eventually(
        'its calls wait',
        async () => (await waitingForLocks(shop.database)) === OF_ONE_CALLER,
      );
      await place(other);
      expect((await other.live.get('/v1/orders')).status).toBe(200);
      expect(await waitingForLocks(shop.database)).toBe(OF_ONE_CALLER);
      const refused = await Promise.race(first);
      expectProblem(refused, 429, 'rate_limited');
      expect(refused.body.detail).toContain('at most 2 writes at a time');
      expect(refused.headers.get('retry-after')).toBe('1');
    });

    const statuses = (await Promise.all(first)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([202, 429]));
    for (const key of keys) expect((await buy(key)).status).toBe(202);
    const { rows } = await shop.database.pool.query(
      'SELECT count(*)::int AS n FROM orders WHERE partner_id = $1',
      [crowd.id],
    );
    expect(rows).toEqual([{ n: ORDERS }]);
    await expectBooksToAddUp(shop.database);
  });
});
