import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE, statement } from './live-shop.js';

const IN_USE = { code: 'provider_rejected', reason: 'One is in use.' } as const;

let shop: LiveShop;
let buyer: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
});

afterAll(() => shop.close());

beforeEach(async () => {
  buyer = await shop.buyer(2 * PRICE);
  shop.liveProvider.cancelState = () => ({ state: 'canceled' });
});

async function issuedOrder(quantity: number): Promise<string> {
  const { id } = await place(buyer, quantity);
  expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
  return id as string;
}

async function cancel(id: string): Promise<void> {
  const answer = await buyer.live.post(`/v1/orders/${id}/cancel`);
  expect(answer.status, answer.text).toBe(202);
}

/** What the provider calls the order's eSIMs. */
async function upstreamIds(orderId: string): Promise<string[]> {
  const { rows } = await shop.database.pool.query<{ provider_esim_id: string }>(
    'SELECT provider_esim_id FROM esims WHERE order_id = $1 ORDER BY id',
    [orderId],
  );
  return rows.map((row) => row.provider_esim_id);
}

async function change(esim: string, assignment: string): Promise<void> {
  await shop.database.pool.query(`UPDATE esims SET ${assignment} WHERE provider_esim_id = $1`, [esim]);
}

/** Refunds of the ledger, in cents. */
async function refunds(): Promise<number[]> {
  return (await statement(buyer)).filter(([type]) => type === 'refund').map(([, amount]) => amount);
}

const statuses = (order: Json): string[] =>
  (order['esims'] as { status: string }[]).map((esim) => esim.status).sort();

describe('a cancellation', () => {
  it('refunds what was charged as a transaction of its own', async () => {
    const id = await issuedOrder(2);
    await cancel(id);
    const order = await shop.settled(buyer, id);
    expect(order).toMatchObject({ status: 'canceled', refunded: { amount: 2 * PRICE, currency: 'USD' } });
    expect(await balance(buyer)).toEqual({ posted: 2 * PRICE, held: 0, available: 2 * PRICE });
    expect(await statement(buyer)).toEqual([
      ['refund', 2 * PRICE],
      ['charge', -2 * PRICE],
      ['deposit', 2 * PRICE],
    ]);
    await expectBooksToAddUp(shop.database);
  });

  it('of a part refunds that part, says why the rest stayed, and can be asked for again', async () => {
    buyer = await shop.buyer(3 * PRICE);
    const id = await issuedOrder(3);
    shop.liveProvider.cancelState = ({ esims }) => ({
      state: 'partly_canceled',
      canceledEsimIds: esims.slice(0, 2).map((esim) => esim.providerEsimId),
      failure: IN_USE,
    });
    await cancel(id);
    const partly = await shop.settled(buyer, id);
    expect(partly).toMatchObject({
      status: 'issued',
      cancel_failure: IN_USE,
      refunded: { amount: 2 * PRICE, currency: 'USD' },
    });
    expect(statuses(partly)).toEqual(['canceled', 'canceled', 'issued']);
    expect(await balance(buyer)).toMatchObject({ available: 2 * PRICE });
    await expectBooksToAddUp(shop.database);

    shop.liveProvider.cancelState = () => ({ state: 'canceled' });
    await cancel(id);
    const whole = await shop.settled(buyer, id);
    expect(whole).toMatchObject({ status: 'canceled', refunded: { amount: 3 * PRICE, currency: 'USD' } });
    expect(shop.liveProvider.cancels.at(-1)!.esims).toHaveLength(1);
    expect(await balance(buyer)).toMatchObject({ available: 3 * PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it('that the provider refuses moves no money', async () => {
    const id = await issuedOrder(2);
    shop.liveProvider.cancelState = () => ({ state: 'refused', failure: IN_USE });
    await cancel(id);
    const order = await shop.settled(buyer, id);
    expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: 0 } });
    expect(await balance(buyer)).toMatchObject({ available: 0 });
    await expectBooksToAddUp(shop.database);
  });
});

describe('a cancellation whose first answer was lost', () => {
  /** Silent until an eSIM was installed; then the provider says what the lost call did. */
  async function loseAnswerAndInstall(orderId: string, esim: string): Promise<() => void> {
    let isInstalled = false;
    const { cancelState } = shop.liveProvider;
    shop.liveProvider.cancelState = (request) => {
      if (!isInstalled) throw new ProviderOutcomeUnknown();
      return cancelState(request);
    };
    const asked = shop.liveProvider.cancels.length;
    await cancel(orderId);
    await eventually('the upstream was asked', () => shop.liveProvider.cancels.length > asked);
    await change(esim, `profile_status = 'downloaded'`);
    return () => (isInstalled = true);
  }

  it('refunds what that call took back, though an eSIM was installed meanwhile', async () => {
    const id = await issuedOrder(2);
    const [gone, installed] = await upstreamIds(id);
    const canceledEsimIds = [gone!];
    shop.liveProvider.cancelState = () => ({ state: 'partly_canceled', canceledEsimIds, failure: IN_USE });
    const answerAgain = await loseAnswerAndInstall(id, installed!);
    answerAgain();
    const order = await shop.settled(buyer, id);
    expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: PRICE } });
    expect(statuses(order)).toEqual(['canceled', 'issued']);
    expect(await refunds()).toEqual([PRICE]);
    expect(await balance(buyer)).toMatchObject({ posted: PRICE, available: PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it('refunds nothing, and is back where it was, when that call took nothing back', async () => {
    const id = await issuedOrder(1);
    const [installed] = await upstreamIds(id);
    shop.liveProvider.cancelState = () => ({ state: 'refused', failure: IN_USE });
    const answerAgain = await loseAnswerAndInstall(id, installed!);
    answerAgain();
    const order = await shop.settled(buyer, id);
    expect(order).toMatchObject({ status: 'issued', cancel_failure: IN_USE, refunded: { amount: 0 } });
    expect(await refunds()).toEqual([]);
    await expectBooksToAddUp(shop.database);
  });
});

describe('an order that had lost an eSIM before', () => {
  it('has refunded what the ledger has, not the eSIM that the provider revoked by itself', async () => {
    const id = await issuedOrder(2);
    const [revoked, left] = await upstreamIds(id);
    await change(revoked!, `status = 'canceled'`);
    await cancel(id);
    const order = await shop.settled(buyer, id);
    expect(order).toMatchObject({ status: 'canceled', refunded: { amount: PRICE, currency: 'USD' } });
    expect(shop.liveProvider.cancels.at(-1)!.esims.map((esim) => esim.providerEsimId)).toEqual([left]);
    expect(await refunds()).toEqual([PRICE]);
    expect(await balance(buyer)).toMatchObject({ available: PRICE });
    await expectBooksToAddUp(shop.database);
  });
});
