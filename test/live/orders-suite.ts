import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksInOrder } from './books.js';
import { buy, cancel, LiveShop, money, order, priceOf, settled, statement } from './shop.js';
import type { Upstream } from './upstream.js';

export interface Bench<U extends Upstream> {
  shop: LiveShop;
  upstream: U;
  /** Its package's price in cents at the start of the test. */
  price: number;
}

/** A shop that the tests of a file share; after each one the books must be in order. */
export function benchOf<U extends Upstream>(
  start: () => Promise<U>,
  settings: Record<string, string> = {},
): Bench<U> {
  const bench = {} as Bench<U>;
  beforeAll(async () => {
    bench.upstream = await start();
    bench.shop = await LiveShop.open(bench.upstream, settings);
  });
  beforeEach(async () => {
    bench.price = await priceOf(bench.shop.buyers[0]!, bench.upstream.packageId);
  });
  afterEach(async () => {
    bench.upstream.calmDown();
    await expectBooksInOrder(bench.shop);
  });
  afterAll(() => bench.shop.close());
  return bench;
}

/** What holds for live orders at every provider. */
export function describeOrders(bench: Bench<Upstream>): void {
  /**
   * How many placements one order took, at most: faults strike the next calls of any kind, so that on a busy machine a call of the
   * background may take them, and the order is placed again, up to ten times, until `enough` were sent.
   */
  async function mostPlacements(enough: number, buyOne: () => Promise<void>): Promise<number> {
    let most = 0;
    for (let tries = 0; tries < 10 && most < enough; tries++) {
      const before = bench.upstream.arrivals('order');
      await buyOne();
      most = Math.max(most, bench.upstream.arrivals('order') - before);
    }
    return most;
  }

  describe('a live order', () => {
    it('is issued with what the provider sold, charged, and told', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(5 * price);
      const done = await buy(buyer, upstream.packageId, 2, { reference: 'booking-1' });
      expect(done).toMatchObject({
        mode: 'live',
        status: 'issued',
        quantity_issued: 2,
        reference: 'booking-1',
      });
      expect(await money(buyer)).toEqual([3 * price, 0, 3 * price]);
      expect(await statement(buyer)).toEqual([
        ['deposit', 5 * price],
        ['charge', -2 * price],
      ]);
    });

    it('is another purchase when its key is used again after its 24 hours', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(2 * price);
      const body = { package_id: upstream.packageId };
      const idempotencyKey = randomUUID();
      const place = async (): Promise<Json> => {
        const answer = await buyer.api.post('/v1/orders', body, { idempotencyKey });
        expect(answer.status, answer.text).toBe(202);
        return settled(buyer, answer.body.data as Json);
      };
      const first = await place();
      // As the purge does when the hours are over.
      await shop.database.pool.query('DELETE FROM idempotency_keys WHERE key = $1', [idempotencyKey]);
      const second = await place();
      expect([first['status'], second['status']]).toEqual(['issued', 'issued']);
      expect(second['id']).not.toBe(first['id']);
      for (const { id } of [first, second] as { id: string }[])
        expect(upstream.account(await shop.referenceOf(id)).bought).toBe(1);
    });

    it('whose answer was lost after the provider sold it is found by its reference and not bought again', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      const before = upstream.arrivals('order');
      upstream.dropAnswersAfterCommit(1);
      const done = await buy(buyer, upstream.packageId);
      expect(done).toMatchObject({ status: 'issued', quantity_issued: 1 });
      expect(upstream.arrivals('order') - before, 'placements sent').toBe(1);
      expect((await shop.row(done['id'] as string))['upstream_attempts'], 'looked again').toBeGreaterThan(1);
    });

    it('that was lost on its way is placed again after the read lag, and bought once', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      const before = upstream.arrivals('order');
      upstream.dropCallsBeforeCommit(1);
      expect(await buy(buyer, upstream.packageId)).toMatchObject({ status: 'issued' });
      expect(upstream.arrivals('order') - before, 'placements sent').toBe(2);
    });

    it('outlasts a burst of refusals for busyness', async () => {
      const { shop, upstream, price } = bench;
      const sent = await mostPlacements(3, async () => {
        const buyer = await shop.buyer(price);
        upstream.refuseAsBusy(2);
        expect(await buy(buyer, upstream.packageId)).toMatchObject({ status: 'issued' });
      });
      expect(sent).toBe(3);
    });

    it.each(['html', 'server_error'] as const)('outlasts answers that are none (%s)', async (kind) => {
      const { shop, upstream, price } = bench;
      const sent = await mostPlacements(2, async () => {
        const buyer = await shop.buyer(price);
        upstream.talkNonsense(2, kind);
        const { id } = await order(buyer, upstream.packageId);
        const done = await settled(buyer, { id });
        expect(done).toMatchObject({ status: 'issued', quantity_issued: 1 });
      });
      expect(sent).toBeGreaterThan(1);
    });

    it('is issued with an ICCID that another eSIM has already', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(2 * price);
      const iccids: string[] = [];
      for (let i = 0; i < 2; i++) {
        upstream.issueIccids('reused');
        const done = await buy(buyer, upstream.packageId);
        expect(done).toMatchObject({ status: 'issued' });
        iccids.push(done['esims'][0].iccid as string);
      }
      expect(iccids[0]).toBe(iccids[1]);
    });

    it('is issued with an ICCID whose check digit is wrong', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      upstream.issueIccids('not_luhn');
      const done = await buy(buyer, upstream.packageId);
      expect(done).toMatchObject({ status: 'issued' });
      expect(luhnSum(done['esims'][0].iccid as string) % 10).not.toBe(0);
    });

    it('fails and is released when the package is out of stock', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(3 * price);
      upstream.runOutOfStock();
      const done = await buy(buyer, upstream.packageId, 2);
      expect(done).toMatchObject({
        status: 'failed',
        failure: { code: 'package_unavailable' },
        refunded: { amount: 2 * price, currency: 'USD' },
      });
      expect(await money(buyer)).toEqual([3 * price, 0, 3 * price]);
      expect(await statement(buyer)).toEqual([['deposit', 3 * price]]);
    });

    it('fails as provider_unavailable when our account provider is empty: never as the buyer without money', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      upstream.runOutOfFunds();
      const done = await buy(buyer, upstream.packageId);
      expect(done).toMatchObject({ status: 'failed', failure: { code: 'provider_unavailable' } });
      expect(await money(buyer)).toEqual([price, 0, price]);
      expect((await readFeed(buyer.api)).map(({ type, data }) => [type, data.code])).toEqual([
        ['order.failed', 'provider_unavailable'],
      ]);
    });
  });

  describe('a price that rose after the catalogue was read', () => {
    it('fails the order with price_changed, releases it and refreshes the catalogue, at whose price it sells', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(10 * price);
      upstream.raisePrice();
      const done = await buy(buyer, upstream.packageId);
      expect(done).toMatchObject({ status: 'failed', failure: { code: 'price_changed' } });
      expect(await money(buyer)).toEqual([10 * price, 0, 10 * price]);
      const raised = await eventually('the catalogue has the new price', async () => {
        const now = await priceOf(buyer, upstream.packageId);
        return now > price ? now : null;
      });
      expect(await buy(buyer, upstream.packageId)).toMatchObject({
        status: 'issued',
        unit_price: { amount: raised, currency: 'USD' },
      });
    });
  });

  describe('a cancellation', () => {
    it('before the download is taken back provider and refunded in full', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(2 * price);
      const done = await buy(buyer, upstream.packageId, 2);
      await cancel(buyer, done);
      const canceled = await settled(buyer, done);
      expect(canceled).toMatchObject({
        status: 'canceled',
        refunded: { amount: 2 * price, currency: 'USD' },
        cancel_failure: null,
      });
      expect(canceled['esims'].map((esim: { status: string }) => esim.status)).toEqual([
        'canceled',
        'canceled',
      ]);
      expect(await statement(buyer)).toEqual([
        ['deposit', 2 * price],
        ['charge', -2 * price],
        ['refund', 2 * price],
      ]);
      expectProblem(await buyer.api.post(`/v1/orders/${done['id']}/cancel`), 409, 'order_not_cancelable');
    });

    it('after the download is refused by the provider, and by us once we have seen it; nothing is refunded', async () => {
      const { shop, upstream, price } = bench;
      const buyer = await shop.buyer(price);
      const done = await buy(buyer, upstream.packageId);
      const esim = await shop.row(done['esims'][0].esim_id as string);
      upstream.useEsim({ upstreamId: esim['provider_esim_id'] as string, iccid: esim['iccid'] as string });
      await cancel(buyer, done);
      expect(await settled(buyer, done)).toMatchObject({
        status: 'issued',
        refunded: { amount: 0, currency: 'USD' },
        cancel_failure: { code: 'provider_rejected' },
      });
      await shop.pollUntil(esim['id'] as string, (row) => row['profile_status'] !== 'released');
      expectProblem(await buyer.api.post(`/v1/orders/${done['id']}/cancel`), 409, 'order_not_cancelable');
      expect(await money(buyer)).toEqual([0, 0, 0]);
    });
  });
}

function luhnSum(digits: string): number {
  return [...digits].reverse().reduce((sum, text, i) => {
    const value = Number(text) * (i % 2 === 1 ? 2 : 1);
    return sum + (value > 9 ? value - 9 : value);
  }, 0);
}
