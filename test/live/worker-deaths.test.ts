import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksInOrder } from './books.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import type { Hold } from './gate.js';
import { KillableShop } from './killable-shop.js';
import { buy, type Buyer, esimIdsOf, settled } from './shop.js';
import { TableLock } from './table-lock.js';
import type { Upstream } from './upstream.js';
import { ZenditUpstream } from './zendit-upstream.js';

/**
 * Kills processes with SIGKILL at each boundary between two steps. Before each kill, the test brings six jobs to that
 * boundary: an order, a cancellation and a top-up at each provider.
 *
 *   1  accepted and committed, but no notification sent and nothing claimed           API and worker die
 *   2  claimed and the placement recorded, but the call not sent                      the worker dies
 *   3  the call is in transit and never arrives                                       the worker dies
 *   4  the provider has committed, but its response is not processed                  the worker dies
 *   5  the response is processed, but our transaction is still open                   the worker dies
 *   6  our transaction is committed, but no notification was sent                     the worker dies
 *
 * After each kill, new processes settle everything exactly once without help.
 */

const DEATHS = 6;
/** An order, a cancellation and a top-up. */
const ACTS = 3;

interface Stock {
  readonly upstream: Upstream;
  readonly toCancel: Json[];
  readonly toTopUp: string[];
}

/** A call of the partner that is repeated with the same key until it gets a response. */
interface Wish {
  readonly path: string;
  readonly body?: object;
  readonly key: string;
}

let house: KillableShop;
let buyer: Buyer;
let stocks: Stock[];
let locks: TableLock[] = [];

beforeAll(async () => {
  house = await KillableShop.open([await EsimAccessUpstream.start(), await ZenditUpstream.start()]);
  buyer = await house.shop.buyer(1_000_000);
  stocks = await Promise.all(house.shop.upstreams.map((upstream) => stockUp(upstream)));
});

afterEach(async () => {
  await liftObstacles();
  await expectBooksInOrder(house.shop);
});

afterAll(() => house.close());

async function stockUp(upstream: Upstream): Promise<Stock> {
  const orders = Array.from({ length: DEATHS }, () => buy(buyer, upstream.packageId));
  const [many, ...toCancel] = await Promise.all([buy(buyer, upstream.packageId, DEATHS), ...orders]);
  return { upstream, toCancel, toTopUp: esimIdsOf(many) };
}

function nextWishes(): Wish[] {
  return stocks.flatMap(({ upstream, toCancel, toTopUp }) => [
    { path: '/v1/orders', body: { package_id: upstream.packageId, quantity: 2 }, key: randomUUID() },
    { path: `/v1/orders/${toCancel.pop()!['id']}/cancel`, key: randomUUID() },
    {
      path: '/v1/topups',
      body: { esim_id: toTopUp.pop(), package_id: upstream.topupPackageId },
      key: randomUUID(),
    },
  ]);
}

async function wish({ path, body, key }: Wish): Promise<Json> {
  const answer = await buyer.api.post(path, body, { idempotencyKey: key });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/** Removes all blocks before the processes are restarted. */
async function liftObstacles(): Promise<void> {
  for (const gate of house.gates) gate.reopen();
  await Promise.all(locks.map((lock) => lock.release()));
  locks = [];
}

async function hold(table: string): Promise<TableLock> {
  const lock = await TableLock.take(house.shop.database, table);
  locks.push(lock);
  return lock;
}

function closeGates(at: Hold): void {
  for (const gate of house.gates) gate.close(at);
}

/** Waits until every gate holds one call of each kind. An order at Zendit has a call for each of its two eSIMs. */
async function actsWait(): Promise<void> {
  await eventually('every act waits at its gate', () =>
    house.gates.every((gate) => new Set(gate.waiting).size === ACTS),
  );
  await eventually(
    'every call of the orders waits',
    () => house.gates[1]!.waiting.filter((act) => act === 'order').length === 2,
  );
}

async function rowsOf(jobs: readonly Json[]): Promise<Json[]> {
  return Promise.all(jobs.map(({ id }) => house.shop.row(id as string)));
}

/** Number of sold, canceled and applied items at the providers, in the order of the jobs. */
async function effects(jobs: readonly Json[]): Promise<number[]> {
  const rows = await rowsOf(jobs);
  return rows.map((row, i) => {
    const upstream = stocks[Math.floor(i / ACTS)]!.upstream;
    const reference = row['provider_reference'] as string;
    if (i % ACTS === 2) return upstream.topupsOf(reference);
    const { bought, canceled, open } = upstream.account(reference);
    return i % ACTS === 1 ? canceled : bought + open;
  });
}

/** Expects that every job has ended correctly and once. `expectBooksInOrder` then checks the money and the events. */
async function expectSettled(jobs: readonly Json[]): Promise<void> {
  const ends = await Promise.all(jobs.map((job) => settled(buyer, job)));
  const perUpstream = ['issued', 'canceled', 'completed'];
  expect(ends.map((end) => end['status'] as string)).toEqual([...perUpstream, ...perUpstream]);
}

async function killAndRestartWorker(): Promise<void> {
  await house.worker.kill();
  await liftObstacles();
  await house.worker.restart();
}

const NOTHING = [0, 0, 0, 0, 0, 0];
const isClaimed = (row: Json): boolean => row['lease_until'] !== null && Number(row['fence']) > 0;

describe('a worker killed by SIGKILL', () => {
  it('1: loses nothing between the commit that accepts a job and the first claim', async () => {
    await house.worker.kill();
    await hold('bullmq.job');
    const wishes = nextWishes();
    const jobs = await Promise.all(wishes.map(wish));
    await house.api.kill();
    expect(await effects(jobs)).toEqual(NOTHING);
    for (const row of await rowsOf(jobs)) expect(isClaimed(row), 'claimed').toBe(false);
    await liftObstacles();
    await Promise.all([house.api.restart(), house.worker.restart()]);
    // The partner may not have received the responses and repeats the calls with the same keys.
    const again = await Promise.all(wishes.map(wish));
    expect(again.map(({ id }) => id as string)).toEqual(jobs.map(({ id }) => id as string));
    await expectSettled(jobs);
  });

  it('2: loses nothing between the recorded claim and the call', async () => {
    const pace = await hold('upstream_pace');
    const jobs = await Promise.all(nextWishes().map(wish));
    await eventually('every job is claimed and noted', async () => {
      const rows = await rowsOf(jobs);
      return rows.every((row) => isClaimed(row) && row['upstream_placed_at'] !== null);
    });
    await pace.waiters(jobs.length);
    await house.worker.kill();
    expect(await effects(jobs)).toEqual(NOTHING);
    const placed = (await rowsOf(jobs)).map((row) => row['upstream_placed_at'] !== null);
    expect(placed, 'a placement is noted before it leaves').toEqual(jobs.map(() => true));
    await liftObstacles();
    await house.worker.restart();
    await expectSettled(jobs);
  });

  it('3: loses nothing if the call is in transit and never arrives', async () => {
    closeGates('request');
    const jobs = await Promise.all(nextWishes().map(wish));
    await actsWait();
    expect(await effects(jobs)).toEqual(NOTHING);
    await killAndRestartWorker();
    await expectSettled(jobs);
  });

  it("4: loses nothing between the provider's commit and the processing of its response", async () => {
    closeGates('answer');
    const jobs = await Promise.all(nextWishes().map(wish));
    await actsWait();
    const done = await effects(jobs);
    expect([done[0], done[1], done[2], done[3]], 'done upstream').toEqual([2, 1, 1, 2]);
    for (const row of await rowsOf(jobs)) expect(isClaimed(row), 'not ended here').toBe(true);
    await killAndRestartWorker();
    await expectSettled(jobs);
  });

  it('5: loses nothing between the response and the commit of our transaction', async () => {
    const ledger = await hold('ledger_transactions');
    const jobs = await Promise.all(nextWishes().map(wish));
    // The worker writes outcomes in batches, and some batches wait for others.
    await eventually('every job is done there and not ended here', async () => {
      const rows = await rowsOf(jobs);
      return rows.every(isClaimed) && (await effects(jobs)).join() === '2,1,1,2,1,1';
    });
    await ledger.waiters(1);
    await killAndRestartWorker();
    await expectSettled(jobs);
  });

  it('6: loses nothing after our commit while the queue is down', async () => {
    await hold('bullmq.job');
    const jobs = await Promise.all(nextWishes().map(wish));
    await eventually('every job is ended', async () =>
      (await rowsOf(jobs)).every((row) => row['next_attempt_at'] === null),
    );
    await killAndRestartWorker();
    await expectSettled(jobs);
  });
});
