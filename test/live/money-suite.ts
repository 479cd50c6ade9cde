import { describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import type { Bench } from './orders-suite.js';
import { buy, esimIdsOf, money, order, priceOf, readAll, settled, statement, topUp } from './shop.js';
import { TableLock } from './table-lock.js';
import type { Upstream } from './upstream.js';

/** What holds for top-ups and for balances at every provider. */
export function describeMoney(bench: Bench<Upstream>): void {
  describe('a live top-up', () => {
    it.each([
      ['is applied', () => undefined, 1],
      ['whose answer was lost is found on the eSIM', (u: Upstream) => u.dropAnswersAfterCommit(1), 1],
      ['that was lost on its way is sent again', (u: Upstream) => u.dropCallsBeforeCommit(1), 2],
    ] as const)('%s, once, and charged once', async (_what, breakIt, placements) => {
      const { shop, upstream, price } = bench;
      const topupPrice = await priceOf(shop.buyers[0]!, upstream.topupPackageId);
      const buyer = await shop.buyer(price + 2 * topupPrice);
      const done = await buy(buyer, upstream.packageId);
      const before = upstream.arrivals('topup');
      breakIt(upstream);
      const topup = await topUp(buyer, esimIdsOf(done)[0]!, upstream.topupPackageId, { reference: 'more-1' });
      expect(await settled(buyer, topup)).toMatchObject({ status: 'completed', reference: 'more-1' });
      expect(upstream.arrivals('topup') - before, 'placements sent').toBe(placements);
      expect(upstream.topupsOf(await shop.referenceOf(topup['id'] as string))).toBe(1);
      expect(await statement(buyer)).toEqual([
        ['deposit', price + 2 * topupPrice],
        ['charge', -price],
        ['charge', -topupPrice],
      ]);
    });
  });

  describe('a balance that does not cover it', () => {
    it('refuses an order and a top-up with 402 and changes nothing, not even the reference', async () => {
      const { shop, upstream, price } = bench;
      const topupPrice = await priceOf(shop.buyers[0]!, upstream.topupPackageId);
      const rest = Math.min(price, topupPrice) - 1;
      const buyer = await shop.buyer(price + rest);
      const done = await buy(buyer, upstream.packageId);
      const [orders, topups] = [upstream.arrivals('order'), upstream.arrivals('topup')];
      const body = { package_id: upstream.packageId, reference: 'booking-2', quantity: 1 };
      expectProblem(await buyer.api.post('/v1/orders', body), 402, 'insufficient_balance');
      const topup = { esim_id: esimIdsOf(done)[0], package_id: upstream.topupPackageId };
      expectProblem(await buyer.api.post('/v1/topups', topup), 402, 'insufficient_balance');
      expect(await money(buyer)).toEqual([rest, 0, rest]);
      expect(await readAll(buyer, '/v1/orders')).toHaveLength(1);
      expect(await readAll(buyer, '/v1/topups')).toEqual([]);
      expect(await readFeed(buyer.api)).toHaveLength(1);
      expect([upstream.arrivals('order'), upstream.arrivals('topup')]).toEqual([orders, topups]);
      await shop.deposit(buyer, price - rest, 'what-is-missing');
      expect(await buy(buyer, upstream.packageId, 1, { reference: 'booking-2' })).toMatchObject({
        status: 'issued',
      });
      expect(await money(buyer)).toEqual([0, 0, 0]);
    });

    it('of ten, ordered forty times at once, issues exactly ten and answers 402 to thirty', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(10 * price);
      const answers = await Promise.all(
        Array.from({ length: 40 }, () =>
          buyer.api.post('/v1/orders', { package_id: upstream.packageId, quantity: 1 }),
        ),
      );
      const accepted = answers.filter(({ status }) => status === 202);
      const refused = answers.filter(({ status }) => status !== 202);
      expect([accepted.length, refused.length]).toEqual([10, 30]);
      for (const answer of refused) expectProblem(answer, 402, 'insufficient_balance');
      const done = await Promise.all(accepted.map(({ body }) => settled(buyer, body.data)));
      expect(done.map(({ status }) => status as string)).toEqual(Array<string>(10).fill('issued'));
      expect(await money(buyer)).toEqual([0, 0, 0]);
      expect(await readAll(buyer, '/v1/orders')).toHaveLength(10);
    });

    it('is free again when an order fails: the next one is taken', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      upstream.runOutOfStock();
      // No worker can ask a provider meanwhile: otherwise the order may fail before the next one is posted.
      const pace = await TableLock.take(shop.database, 'upstream_pace');
      let failing: Json;
      try {
        failing = await order(buyer, upstream.packageId);
        const body = { package_id: upstream.packageId, quantity: 1 };
        expectProblem(await buyer.api.post('/v1/orders', body), 402, 'insufficient_balance');
      } finally {
        await pace.release();
      }
      expect(await settled(buyer, failing)).toMatchObject({ status: 'failed' });
      upstream.calmDown();
      expect(await buy(buyer, upstream.packageId)).toMatchObject({ status: 'issued' });
    });
  });
}
