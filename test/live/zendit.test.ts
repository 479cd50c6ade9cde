import { describe, expect, it } from 'vitest';
import { describeMoney } from './money-suite.js';
import { benchOf, describeOrders } from './orders-suite.js';
import { buy, money, statement } from './shop.js';
import { ZenditUpstream } from './zendit-upstream.js';

const bench = benchOf(() => ZenditUpstream.start());

describe('Zendit', () => {
  describeOrders(bench);
  describeMoney(bench);

  it('out of stock in the middle of an order issues the others and refunds what is missing', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(5 * price);
    upstream.endPurchases(null, 'OUT_OF_STOCK', null, 'OUT_OF_STOCK', null);
    const done = await buy(buyer, upstream.packageId, 5);
    expect(done).toMatchObject({
      status: 'partially_issued',
      quantity_issued: 3,
      quantity_failed: 2,
      failure: { code: 'package_unavailable' },
      refunded: { amount: 2 * price, currency: 'USD' },
    });
    expect(await money(buyer)).toEqual([2 * price, 0, 2 * price]);
    expect(await statement(buyer)).toEqual([
      ['deposit', 5 * price],
      ['charge', -3 * price],
    ]);
  });

  it.each([
    ['503', (upstream: ZenditUpstream) => upstream.denyAfterCommit(2)],
    ['a page of HTML', (upstream: ZenditUpstream) => upstream.talkNonsenseAfterCommit(2)],
  ] as const)(
    'that answers %s after it sold is asked by reference: nothing is bought again',
    async (_, breakIt) => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(2 * price);
      const before = upstream.arrivals();
      breakIt(upstream);
      expect(await buy(buyer, upstream.packageId, 2)).toMatchObject({ status: 'issued', quantity_issued: 2 });
      expect(upstream.arrivals() - before, 'placements sent').toBe(2);
    },
  );
});
