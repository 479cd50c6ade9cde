import { describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { describeMoney } from './money-suite.js';
import { benchOf, describeOrders } from './orders-suite.js';
import { buy, money, order, priceOf, statement } from './shop.js';
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

  it('that refuses the last purchase of an order without a reason leaves it to support, who keeps what was bought', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(3 * price);
    const before = upstream.arrivals();
    upstream.sellOnly(2);
    upstream.dropCallsBeforeCommit(1);
    const { id } = await order(buyer, upstream.packageId, 3);
    // The first time it was lost; from the second time on it is refused, and only the others are known.
    await eventually('the last one was refused', () => upstream.arrivals() - before > 3);
    const reconcile = (action: string) =>
      shop.office.admin.post(`/internal/v1/orders/${id}/reconcile`, { action, note: 'asked Zendit' });
    const refused = await eventually('no worker is at it', async () => {
      const answer = await reconcile('mark_failed');
      return /2 of 3/.test(answer.body.detail as string) ? answer : null;
    });
    expectProblem(refused, 409, 'conflict');
    expect(await money(buyer)).toEqual([3 * price, 3 * price, 0]);
    const issued = await eventually('the read lag is over', async () => {
      const answer = await reconcile('mark_issued');
      return answer.status === 200 ? answer : null;
    });
    expect(issued.body.data).toMatchObject({
      status: 'partially_issued',
      quantity_issued: 2,
      quantity_failed: 1,
      failure: { code: 'provider_unavailable' },
      refunded: { amount: price, currency: 'USD' },
    });
    expect(await money(buyer)).toEqual([price, 0, price]);
    expect(await statement(buyer)).toEqual([
      ['deposit', 3 * price],
      ['charge', -2 * price],
    ]);
  });

  it('that sells dearer than it listed is told to support and read again: the next order pays the new price', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(10 * price);
    // No read of the list within the last minutes would hold this one back.
    await shop.database.pool.query(
      `UPDATE catalog_syncs SET started_at = started_at - interval '20 minutes'`,
    );
    upstream.sellDearer();
    expect(await buy(buyer, upstream.packageId)).toMatchObject({
      status: 'issued',
      unit_price: { amount: price, currency: 'USD' },
    });
    const raised = await eventually('the catalogue has the new price', async () => {
      const now = await priceOf(buyer, upstream.packageId);
      return now > price ? now : null;
    });
    expect(await buy(buyer, upstream.packageId)).toMatchObject({ unit_price: { amount: raised } });
    const { data } = (await shop.office.admin.get('/internal/v1/alerts?type=order.needs_review')).body;
    const ofPrices = (data as Json[]).filter(({ details }) => details.what === 'sold_dearer');
    expect(ofPrices).toHaveLength(1);
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
