import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksInOrder } from './books.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import type { Hold } from './gate.js';
import { KillableShop } from './killable-shop.js';
import { buy, type Buyer, esimIdsOf, settled } from './shop.js';
import { TableLock } from './table-lock.js';
import type { Act } from './upstream.js';
import { ZenditUpstream } from './zendit-upstream.js';

/** Kills the worker with SIGKILL at each step of a replacement at each provider. Nobody helps the next worker. */

let house: KillableShop;
let buyer: Buyer;
let locks: TableLock[] = [];

beforeAll(async () => {
  house = await KillableShop.open([await EsimAccessUpstream.start(), await ZenditUpstream.start()]);
  buyer = await house.shop.buyer(1_000_000);
});

afterEach(async () => {
  await liftObstacles();
  await expectBooksInOrder(house.shop);
});

afterAll(() => house.close());

async function liftObstacles(): Promise<void> {
  for (const gate of house.gates) gate.reopen();
  await Promise.all(locks.map((lock) => lock.release()));
  locks = [];
}

interface Replacement {
  readonly old: Json;
  readonly order: Json;
}

/** Requests one replacement at each provider. */
async function replaceEach(hinder: () => Promise<unknown> | void): Promise<Replacement[]> {
  const olds = await Promise.all(house.shop.upstreams.map(({ packageId }) => buy(buyer, packageId)));
  await hinder();
  return Promise.all(
    olds.map(async (old) => {
      const answer = await buyer.api.post(`/v1/esims/${esimIdsOf(old)[0]}/replace`);
      expect(answer.status, answer.text).toBe(202);
      return { old, order: answer.body.data as Json };
    }),
  );
}

/** Expects one paid eSIM for each replacement, here and at its provider. */
async function expectOnePaid(replacements: readonly Replacement[]): Promise<void> {
  for (const [index, { old, order }] of replacements.entries()) {
    expect(await settled(buyer, order)).toMatchObject({ status: 'issued', refunded: { amount: 0 } });
    expect(await settled(buyer, old)).toMatchObject({ status: 'canceled', refunded: old['total'] });
    const upstream = house.shop.upstreams[index]!;
    const accountOf = async ({ id }: Json) => upstream.account(await house.shop.referenceOf(id as string));
    expect(await accountOf(old)).toMatchObject({ bought: 1, canceled: 1 });
    expect(await accountOf(order)).toMatchObject({ bought: 1, canceled: 0 });
  }
}

async function killWorker(): Promise<void> {
  await house.worker.kill();
  await liftObstacles();
  await house.worker.restart();
}

async function hold(table: string): Promise<TableLock> {
  const lock = await TableLock.take(house.shop.database, table);
  locks.push(lock);
  return lock;
}

describe('a worker killed during a replacement', () => {
  it.each<[string, Act, Hold]>([
    ['before the cancellation reaches the wholesaler', 'cancel', 'request'],
    ['after the wholesaler has canceled', 'cancel', 'answer'],
    ['before the new order reaches the wholesaler', 'order', 'request'],
    ['after the wholesaler has sold the new eSIM', 'order', 'answer'],
  ])('%s leaves exactly one paid eSIM', async (_when, act, at) => {
    const replacements = await replaceEach(() => house.gates.forEach((gate) => gate.close(at, act)));
    await eventually('both calls wait', () => house.gates.every(({ waiting }) => waiting.includes(act)));
    await killWorker();
    await expectOnePaid(replacements);
  });

  it('while the refund and the hold are written leaves exactly one paid eSIM', async () => {
    const replacements = await replaceEach(async () => {
      await hold('wallet_holds');
    });
    await locks[0]!.waiters(1);
    await killWorker();
    await expectOnePaid(replacements);
  });
});
