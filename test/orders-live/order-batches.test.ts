import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { sql, Transactions } from '../../src/infra/database/index.js';
import { OrderJobsRepository } from '../../src/orders/order-jobs.repository.js';
import type { ProviderOrderRequest, ProviderOrderState } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE } from './live-shop.js';
import { OUT_OF_STOCK } from './stub-wholesaler.js';

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open({ PROVISION_CONCURRENCY_PER_PARTNER: '64' });
});

afterAll(() => shop.close());

afterEach(async () => {
  vi.restoreAllMocks();
  await shop.stopWorker();
});

type Answer = (request: ProviderOrderRequest) => ProviderOrderState;

/** Lets a worker place these orders, and the provider respond to all of them in one event loop turn. */
async function answeredAtOnce(
  ids: readonly string[],
  answerOf: (id: string, nth: number) => Answer,
  before: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const { rows } = await shop.database.pool.query<{ id: string; reference: string }>(
    'SELECT id, provider_reference AS reference FROM orders WHERE id = ANY ($1)',
    [ids],
  );
  const idOf = new Map(rows.map(({ id, reference }) => [reference, id]));
  const held: (() => void)[] = [];
  vi.spyOn(shop.liveProvider, 'placeOrder').mockImplementation(
    (request) =>
      new Promise((resolve) => {
        const id = idOf.get(request.reference);
        if (id === undefined) return resolve(provisioned(request));
        held.push(() => resolve(answerOf(id, ids.indexOf(id))(request)));
      }),
  );
  await shop.startWorker();
  await eventually('every call is under way', () => held.length === ids.length);
  await before();
  for (const answer of held) answer();
}

const provisioned: Answer = (request) => shop.liveProvider.provision(request);
/** PostgreSQL rejects an eSIM with this ICCID, which fails its transaction. */
const poisoned: Answer = ({ quantity }) => {
  // Use a random reference. Under the order's own, a later lookup would find a valid eSIM and issue it.
  const state = shop.liveProvider.provision({ reference: randomUUID(), quantity });
  if (state.state !== 'provisioned') throw new Error('not provisioned');
  return { ...state, profiles: state.profiles.map((profile) => ({ ...profile, iccid: 'no number' })) };
};

/** Places orders one after another, because only the responses must be simultaneous. */
async function placeMany(buyers: readonly LiveBuyer[], count: number, quantity = 1): Promise<string[]> {
  const ids: string[] = [];
  for (let nth = 0; nth < count; nth++) {
    ids.push((await place(buyers[nth % buyers.length]!, quantity))['id'] as string);
  }
  return ids;
}

interface Ended {
  readonly id: string;
  readonly status: string;
  readonly transaction: string;
  readonly esims: number;
  readonly events: number;
}

/** The current state of the orders, with the transaction that last wrote each row. */
async function read(ids: readonly string[]): Promise<Map<string, Ended>> {
  const { rows } = await shop.database.pool.query<Ended>(
    `SELECT id, status, xmin::text AS transaction,
            (SELECT count(*)::int FROM esims e WHERE e.order_id = o.id) AS esims,
            (SELECT count(*)::int FROM events v WHERE v.body::jsonb -> 'data' ->> 'order_id' = o.id) AS events
     FROM orders o WHERE id = ANY ($1)`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

const OPEN = ['pending', 'processing'];

async function allEnded(ids: readonly string[]): Promise<Map<string, Ended>> {
  return eventually('every order ended', async () => {
    const orders = await read(ids);
    return [...orders.values()].some(({ status }) => OPEN.includes(status)) ? null : orders;
  });
}

describe('a batch of orders whose provider responds at the same time', () => {
  it('ends in one transaction, each order with its own status, eSIMs, event and money', async () => {
    const buyers = await Promise.all([shop.buyer(20 * PRICE), shop.buyer(20 * PRICE)]);
    const ids = await placeMany(buyers, 12, 3);
    const answers: Answer[] = [
      provisioned,
      (request) => shop.liveProvider.provision(request, 1),
      () => ({ state: 'rejected', failure: OUT_OF_STOCK }),
    ];
    await answeredAtOnce(ids, (_id, nth) => answers[Math.floor(nth / 2) % 3]!);
    const ended = [...(await allEnded(ids)).values()];
    expect(new Set(ended.map(({ transaction }) => transaction)).size).toBe(1);
    const tally = Map.groupBy(ended, ({ status, esims, events }) => `${status} ${esims} ${events}`);
    expect([...tally].map(([what, some]) => [what, some.length]).sort()).toEqual([
      ['failed 0 1', 4],
      ['issued 3 1', 4],
      ['partially_issued 1 1', 4],
    ]);
    // Each buyer has six orders: two with three eSIMs, two with one and two with none.
    for (const buyer of buyers)
      expect(await balance(buyer)).toEqual({ posted: 12 * PRICE, held: 0, available: 12 * PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it('ends even if the database rejects one of them, and only that one is retried later', async () => {
    const buyers = await Promise.all([shop.buyer(20 * PRICE), shop.buyer(20 * PRICE)]);
    const ids = await placeMany(buyers, 9);
    const [sick, ...healthy] = ids as [string, ...string[]];
    await answeredAtOnce(ids, (id) => (id === sick ? poisoned : provisioned));
    const ended = await allEnded(healthy);
    expect([...ended.values()].map(({ status, esims, events }) => [status, esims, events])).toEqual(
      Array(8).fill(['issued', 1, 1]),
    );
    const row = await eventually('the refused one is given back', async () => {
      const one = await shop.row(sick);
      return one['last_error'] === null ? null : one;
    });
    expect(row).toMatchObject({ status: 'processing', last_error: 'QueryFailedError', quantity_issued: 0 });
    expect((await read([sick])).get(sick)).toMatchObject({ esims: 0, events: 0 });
    expect(await balance(buyers[0])).toMatchObject({ held: PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it('ends except for an order with an outdated fence, which is unchanged and keeps its hold', async () => {
    const buyers = await Promise.all([shop.buyer(20 * PRICE), shop.buyer(20 * PRICE)]);
    const ids = await placeMany(buyers, 8);
    const [lost, refused] = ids as [string, string];
    const takeOver = async (): Promise<void> => {
      const { rowCount } = await shop.database.pool.query(
        `UPDATE orders SET fence = fence + 1, lease_until = now() + interval '1 hour' WHERE id = ANY ($1)`,
        [[lost, refused]],
      );
      expect(rowCount).toBe(2);
    };
    // A late success and a late refusal, for orders that a second worker is processing.
    const answerOf = (id: string): Answer =>
      id === refused ? () => ({ state: 'rejected', failure: OUT_OF_STOCK }) : provisioned;
    await answeredAtOnce(ids, answerOf, takeOver);
    const others = ids.slice(2);
    const ended = [...(await allEnded(others)).values()];
    expect(ended.map(({ status, esims, events }) => [status, esims, events])).toEqual(
      Array(6).fill(['issued', 1, 1]),
    );
    expect(new Set(ended.map(({ transaction }) => transaction)).size).toBe(1);
    await shop.stopWorker();
    for (const id of [lost, refused]) {
      expect(await shop.row(id)).toMatchObject({ status: 'processing', failure_code: null });
      expect((await read([id])).get(id)).toMatchObject({ esims: 0, events: 0 });
    }
    for (const buyer of buyers) expect(await balance(buyer)).toMatchObject({ held: PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it("applies only the result of an order's newer lease, whichever result arrives first", async () => {
    const buyer = await shop.buyer(20 * PRICE);
    const [orderId] = (await placeMany([buyer], 1)) as [string];
    const { dataSource } = shop.api.process.resources;
    const jobs = shop.api.process.api!.nest.get(OrderJobsRepository, { strict: false });
    const end = (fence: number, issued: number) => ({
      lease: { id: orderId, fence },
      fulfilled: issued,
      failure: issued === 0 ? OUT_OF_STOCK : null,
    });
    let changed: readonly unknown[] = [];
    const rolledBack = new Transactions(dataSource).run(async (tx) => {
      await sql(tx.manager, `UPDATE orders SET status = 'processing', fence = 6 WHERE id = $1`, [orderId]);
      changed = await jobs.end(tx, [end(5, 0), end(6, 1), end(5, 1)]);
      throw new Error('the order stays for a worker');
    });
    await expect(rolledBack).rejects.toThrow('stays for a worker');
    expect(changed).toEqual([null, { version: expect.any(Number), at: expect.any(Date) }, null]);
    await shop.startWorker();
    await allEnded([orderId]);
  });

  it('ends even if somebody has locked one wallet, and only that partner waits', async () => {
    const [stuck, free] = await Promise.all([shop.buyer(20 * PRICE), shop.buyer(20 * PRICE)]);
    const ids = await placeMany([stuck, free], 6);
    const holder = await shop.database.pool.connect();
    try {
      await answeredAtOnce(
        ids,
        () => provisioned,
        async () => {
          await holder.query('BEGIN');
          await holder.query('SELECT 1 FROM wallets WHERE partner_id = $1 FOR UPDATE', [stuck.id]);
        },
      );
      const ofFree = ids.filter((_, nth) => nth % 2 === 1);
      await allEnded(ofFree);
      const ofStuck = await read(ids.filter((_, nth) => nth % 2 === 0));
      expect([...ofStuck.values()].map(({ status }) => status)).toEqual(Array(3).fill('processing'));
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
    await allEnded(ids);
    await expectBooksToAddUp(shop.database);
  });
});
