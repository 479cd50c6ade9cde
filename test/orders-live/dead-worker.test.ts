import { afterAll, beforeAll, expect, it } from 'vitest';
import { OrderJobsRepository } from '../../src/orders/order-jobs.repository.js';
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

it('places nothing again under a lease that has lapsed, though nobody has taken the order yet', async () => {
  const queue = shop.api.process.api!.nest.get(OrderJobsRepository, { strict: false });
  const { id } = await place(await shop.buyer(PRICE));
  await leaveBehind(id as string);
  const lease = { id: id as string, fence: 1 };
  const note = [{ lease, readLagMs: 0 }];
  const placedAt = (await shop.row(lease.id))['upstream_placed_at'] as Date;
  expect(await queue.markPlaced(note)).toEqual([null]);
  expect((await shop.row(lease.id))['upstream_placed_at']).toEqual(placedAt);
  // A heartbeat that comes late does not bring it back: support may have acted on its end.
  await queue.renew([lease]);
  expect(await queue.markPlaced(note)).toEqual([null]);
  const live = `UPDATE orders SET lease_until = now() + interval '1 minute' WHERE id = $1`;
  await shop.database.pool.query(live, [id]);
  await queue.renew([lease]);
  expect(await queue.markPlaced(note)).toMatchObject([{ waitMs: 0 }]);
  await leaveBehind(lease.id);
});

it('asks by reference before it places anything that a dead worker may have placed', async () => {
  const buyer = await shop.buyer(2 * PRICE);
  const [placed, lost] = [await place(buyer), await place(buyer)];
  const placedReference = await leaveBehind(placed['id'] as string);
  const lostReference = await leaveBehind(lost['id'] as string);
  shop.liveProvider.provision({ reference: placedReference, quantity: 1 });
  await shop.startWorker();
  for (const { id } of [placed, lost]) {
    expect(await shop.settled(buyer, id as string)).toMatchObject({ status: 'issued' });
  }
  expect(shop.liveProvider.placementsOf(placedReference)).toEqual([]);
  expect(shop.liveProvider.placementsOf(lostReference)).toEqual(['again']);
  await expectBooksToAddUp(shop.database);
});
