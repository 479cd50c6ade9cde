import { describe, expect, it } from 'vitest';
import { eventually } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import { describeMoney } from './money-suite.js';
import { benchOf, describeOrders } from './orders-suite.js';
import { buy, esimIdsOf, money, order, priceOf, settled, statement, topUp } from './shop.js';

const GB = 1_000_000_000;
const bench = benchOf(() => EsimAccessUpstream.start());

describe('eSIM Access', () => {
  describeOrders(bench);
  describeMoney(bench);

  it('whose profiles are still being made (200010) is waited for', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(2 * price);
    const before = upstream.arrivals('order');
    upstream.allocateForLooks(2);
    const { id } = await order(buyer, upstream.packageId, 2);
    const done = await settled(buyer, { id });
    expect(done).toMatchObject({ status: 'issued', quantity_issued: 2 });
    expect(upstream.arrivals('order') - before, 'placements sent').toBe(1);
    expect((await shop.row(done['id'] as string))['upstream_attempts'], 'looks').toBeGreaterThan(1);
  });

  it('sells an order as a whole or not at all: out of stock in the middle releases all of it', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(5 * price);
    upstream.leaveStock(3);
    const failed = await buy(buyer, upstream.packageId, 5);
    expect(failed).toMatchObject({
      status: 'failed',
      quantity_issued: 0,
      quantity_failed: 5,
      failure: { code: 'package_unavailable' },
      refunded: { amount: 5 * price, currency: 'USD' },
    });
    expect(await money(buyer)).toEqual([5 * price, 0, 5 * price]);
    expect(await buy(buyer, upstream.packageId, 3)).toMatchObject({ status: 'issued', quantity_issued: 3 });
    expect(await statement(buyer)).toEqual([
      ['deposit', 5 * price],
      ['charge', -3 * price],
    ]);
  });

  it.each([
    ['completed', 'missing', (u: EsimAccessUpstream) => u.dropAnswersAfterCommit(1)],
    ['failed', 'missing', (u: EsimAccessUpstream) => u.dropCallsBeforeCommit(1)],
  ] as const)(
    'whose looks do not tell whether the eSIM has a top-up waits for support, which marks it %s: packages %s',
    async (end, looks, breakIt) => {
      const { shop, upstream, price } = bench;
      const topupPrice = await priceOf(shop.buyers[0]!, upstream.topupPackageId);
      const buyer = await shop.buyer(price + topupPrice);
      const [esimId] = esimIdsOf(await buy(buyer, upstream.packageId));
      const before = upstream.arrivals('topup');
      upstream.keepPurchasesFromLooks(looks);
      breakIt(upstream);
      const { id } = await topUp(buyer, esimId!, upstream.topupPackageId);
      await eventually('it was looked for in vain, and waits for long enough', async () => {
        const { rowCount } = await shop.database.pool.query(
          `UPDATE topups SET created_at = now() - interval '16 minutes',
             upstream_placed_at = upstream_placed_at - interval '1 minute', next_attempt_at = now() + interval '1 hour'
           WHERE id = $1 AND attempts > 1 AND last_error = 'ProviderOutcomeUnknown' AND lease_until IS NULL`,
          [id],
        );
        return rowCount === 1;
      });
      const listed = (await shop.office.admin.get('/internal/v1/topups/needs-review')).body.data as Json[];
      expect(listed).toMatchObject([{ topup_id: id, esim_id: esimId, last_error: 'ProviderOutcomeUnknown' }]);
      expect(await money(buyer)).toEqual([topupPrice, topupPrice, 0]);
      const answer = await shop.office.admin.post(`/internal/v1/topups/${id}/reconcile`, {
        action: `mark_${end}`,
        note: 'seen in the portal of the wholesaler',
      });
      expect([answer.status, answer.body.data?.status], answer.text).toEqual([200, end]);
      // The books of the wholesaler, the statement and the event are compared after each test.
      expect(upstream.arrivals('topup') - before, 'placements sent').toBe(1);
      const rest = end === 'completed' ? 0 : topupPrice;
      expect(await money(buyer)).toEqual([rest, 0, rest]);
      const total = (await buyer.api.get(`/v1/esims/${esimId}`)).body.data.data.total_bytes as number;
      expect(total / GB).toBeCloseTo(end === 'completed' ? 2 : 1, 0);
    },
  );

  it('refuses a top-up whose price rose: released, the catalogue refreshed, and sold at the new price', async () => {
    const { shop, upstream, price } = bench;
    const before = await priceOf(shop.buyers[0]!, upstream.topupPackageId);
    const buyer = await shop.buyer(price + 10 * before);
    const [esimId] = esimIdsOf(await buy(buyer, upstream.packageId));
    upstream.raiseTopupPrice();
    const refused = await settled(buyer, await topUp(buyer, esimId!, upstream.topupPackageId));
    expect(refused).toMatchObject({ status: 'failed', failure: { code: 'price_changed' } });
    expect(await money(buyer)).toEqual([10 * before, 0, 10 * before]);
    const after = await eventually('the catalogue has the new price', async () => {
      const now = await priceOf(buyer, upstream.topupPackageId);
      return now > before ? now : null;
    });
    const sold = await settled(buyer, await topUp(buyer, esimId!, upstream.topupPackageId));
    expect(sold).toMatchObject({ status: 'completed', price: { amount: after, currency: 'USD' } });
  });
});
