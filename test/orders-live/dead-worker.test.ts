import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectBooksToAddUp } from '../wallet/books.js';
import { LiveShop, place, PRICE } from './live-shop.js';

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
});

afterAll(() => shop.close());

/** What a worker leaves that died after its claim: a placement that may have left, and a lapsed lease. */
async function leaveBehind(orderId: string): Promise<string> {
  const { rows } = await shop.database.pool.query<{ provider_reference: string }>(
    `UPDATE orders SET status = 'processing', fence = 1, upstream_attempts = 1, upstream_placed_at = now(),
       lease_until = now() WHERE id = $1 RETURNING provider_reference`,
    [orderId],
  );
  return rows[0]!.provider_reference;
}

it('asks by reference before it places anything that a dead worker may have placed', async () => {
  const buyer = await shop.buyer(2 * PRICE);
  const [placed, lost] = [await place(buyer), await place(buyer)];
  const placedReference = await leaveBehind(placed['id'] as string);
  const lostReference = await leaveBehind(lost['id'] as string);
  shop.wholesaler.provision({ reference: placedReference, quantity: 1 });
  await shop.startWorker();
  for (const { id } of [placed, lost]) {
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
  }
  expect(shop.wholesaler.placementsOf(placedReference)).toEqual([]);
  expect(shop.wholesaler.placementsOf(lostReference)).toEqual(['again']);
  await expectBooksToAddUp(shop.database);
});
