import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EsimProvider, ProviderOrderState } from '../../src/providers/index.js';
import { eventually } from '../harness/index.js';
import { expectBooksToAddUp } from '../wallet/books.js';
import { balance, type LiveBuyer, LiveShop, place, PRICE } from './live-shop.js';

type CancelState = Awaited<ReturnType<EsimProvider['cancelOrder']>>;

const REFUSAL = { code: 'provider_rejected', reason: 'Refused, long ago.' } as const;

let shop: LiveShop;
let buyer: LiveBuyer;

beforeAll(async () => {
  shop = await LiveShop.open({ SHUTDOWN_TIMEOUT_MS: '20000' });
});

afterAll(() => shop.close());

beforeEach(async () => {
  buyer = await shop.buyer(2 * PRICE);
  await shop.startWorker();
});

/** A provider call that ends when the test decides. */
function heldCall<T>(): { readonly isUnderWay: () => boolean; wait(): Promise<T>; answer(state: T): void } {
  let resolve: ((state: T) => void) | null = null;
  return {
    isUnderWay: () => resolve !== null,
    wait: () => new Promise<T>((done) => (resolve = done)),
    answer: (state) => resolve?.(state),
  };
}

/** Simulates that the worker lost its lease and a second worker has taken the order for an hour. */
async function takenOver(id: string): Promise<void> {
  const { rowCount } = await shop.database.pool.query(
    `UPDATE orders SET fence = fence + 1, lease_until = now() + interval '1 hour' WHERE id = $1`,
    [id],
  );
  expect(rowCount).toBe(1);
}

describe('a late response to a worker that has lost the order', () => {
  it('does not fail the order, because a late refusal would refund an order that the new worker is buying', async () => {
    const call = heldCall<ProviderOrderState>();
    shop.liveProvider.script = [() => call.wait()];
    const id = (await place(buyer, 2))['id'] as string;
    await eventually('the call is under way', call.isUnderWay);
    await takenOver(id);
    call.answer({ state: 'rejected', failure: REFUSAL });
    // The stop waits until the worker has processed the response.
    await shop.stopWorker();
    expect(await shop.row(id)).toMatchObject({ status: 'processing', failure_code: null });
    expect(await balance(buyer)).toMatchObject({ held: 2 * PRICE, available: 0 });
    await expectBooksToAddUp(shop.database);
  });

  it('does not issue the order, because the new worker issues what it bought itself', async () => {
    const call = heldCall<ProviderOrderState>();
    shop.liveProvider.script = [() => call.wait()];
    const id = (await place(buyer))['id'] as string;
    await eventually('the call is under way', call.isUnderWay);
    await takenOver(id);
    call.answer(shop.liveProvider.provision({ reference: 'of-the-first', quantity: 1 }));
    await shop.stopWorker();
    expect(await shop.row(id)).toMatchObject({ status: 'processing', quantity_issued: 0 });
    const { rowCount } = await shop.database.pool.query('SELECT 1 FROM esims WHERE order_id = $1', [id]);
    expect(rowCount).toBe(0);
    expect(await balance(buyer)).toMatchObject({ held: PRICE });
    await expectBooksToAddUp(shop.database);
  });

  it.each<[string, CancelState]>([
    ['refuses it', { state: 'refused', failure: REFUSAL }],
    ['executes it', { state: 'canceled' }],
  ])('does not end a cancellation when the provider %s', async (_, word) => {
    const id = (await place(buyer, 2))['id'] as string;
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'issued' });
    const call = heldCall<CancelState>();
    vi.spyOn(shop.liveProvider, 'cancelOrder').mockImplementationOnce(() => call.wait());
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    await eventually('the call is under way', call.isUnderWay);
    await takenOver(id);
    call.answer(word);
    await shop.stopWorker();
    expect(await shop.row(id)).toMatchObject({ status: 'canceling', cancel_failure_code: null });
    expect(await balance(buyer)).toMatchObject({ held: 0, available: 0 });
    await expectBooksToAddUp(shop.database);
  });
});

describe('a worker stop', () => {
  it('waits for the provider call in progress, and records its result', async () => {
    const call = heldCall<ProviderOrderState>();
    let reference = '';
    shop.liveProvider.script = [
      (order) => {
        ({ reference } = order);
        return call.wait();
      },
    ];
    const id = (await place(buyer))['id'] as string;
    await eventually('the call is under way', call.isUnderWay);
    const stopping = shop.stopWorker();
    // Late enough to fail a stop that does not wait, and long before the shutdown timeout.
    setTimeout(() => call.answer(shop.liveProvider.provision({ reference, quantity: 1 })), 500);
    await stopping;
    expect(await shop.row(id)).toMatchObject({ status: 'issued', quantity_issued: 1 });
    await expectBooksToAddUp(shop.database);
  });
});
