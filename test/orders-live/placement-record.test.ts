import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { LiveShop, place, PRICE } from './live-shop.js';

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
});

afterAll(() => shop.close());

describe('the recorded time of the last placement', () => {
  it('is not set by a cancellation, which places nothing', async () => {
    const buyer = await shop.buyer(PRICE);
    const id = (await place(buyer))['id'] as string;
    await shop.settled(buyer, id);
    // As support leaves an order that it has issued without a placement of ours.
    await shop.database.pool.query('UPDATE orders SET upstream_placed_at = NULL WHERE id = $1', [id]);
    expect((await buyer.live.post(`/v1/orders/${id}/cancel`)).status).toBe(202);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'canceled' });
    expect(await shop.row(id)).toMatchObject({ upstream_placed_at: null });
  });

  it('is cleared when the worker cannot call the provider, so that the next attempt places the order first', async () => {
    const buyer = await shop.buyer(PRICE);
    await shop.stopWorker();
    const id = (await place(buyer))['id'] as string;
    await shop.database.pool.query(`UPDATE orders SET provider = 'absent' WHERE id = $1`, [id]);
    await shop.startWorker();
    const row = await eventually('the attempt is given up', async () => {
      const one: Json = await shop.row(id);
      return one['last_error'] === null ? null : one;
    });
    expect(row).toMatchObject({ status: 'processing', upstream_placed_at: null });
    await shop.database.pool.query(`UPDATE orders SET provider = 'stub' WHERE id = $1`, [id]);
    expect(await shop.settled(buyer, id)).toMatchObject({ status: 'issued' });
    expect(shop.liveProvider.placementsOf(row['provider_reference'] as string)).toEqual(['first']);
  });
});
