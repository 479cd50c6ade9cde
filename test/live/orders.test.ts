import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import { eventually } from '../harness/index.js';
import { type Json, readFeed } from '../harness/order-steps.js';
import { expectBooksInOrder } from './books.js';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import {
  buy,
  type Buyer,
  cancel,
  esimIdsOf,
  LiveShop,
  money,
  order,
  priceOf,
  readAll,
  settled,
  statement,
  topUp,
} from './shop.js';
import type { Upstream } from './upstream.js';
import { ZenditUpstream } from './zendit-upstream.js';

const GB = 1_000_000_000;

let shop: LiveShop;
let zendit: ZenditUpstream;
let esimAccess: EsimAccessUpstream;

beforeAll(async () => {
  [zendit, esimAccess] = await Promise.all([ZenditUpstream.start(), EsimAccessUpstream.start()]);
  shop = await LiveShop.open([zendit, esimAccess]);
});

afterEach(async () => {
  zendit.calmDown();
  esimAccess.calmDown();
  await expectBooksInOrder(shop);
  // All buyers' books are checked at this point. Keep only the first buyer, which later tests use to read prices.
  shop.buyers.splice(1);
});

afterAll(() => shop.close());

function currentPrice(packageId: string): Promise<number> {
  return priceOf(shop.buyers[0]!, packageId);
}

function raisedPrice(packageId: string, before: number): Promise<number> {
  return eventually('the catalog has the new price', async () => {
    const now = await currentPrice(packageId);
    return now > before ? now : null;
  });
}

describe.each([
  ['Zendit', (): Upstream => zendit],
  ['eSIM Access', (): Upstream => esimAccess],
])('a live purchase at %s', (_name, upstreamOf) => {
  let upstream: Upstream;
  let price: number;
  let topupPrice: number;
  beforeEach(async () => {
    upstream = upstreamOf();
    price = await currentPrice(upstream.packageId);
    topupPrice = await currentPrice(upstream.topupPackageId);
  });

  it.each([
    ['takes effect', () => undefined, 1],
    ['is found by its reference after a lost response', (u: Upstream) => u.dropAnswersAfterCommit(1), 1],
    ['is placed again after a lost call', (u: Upstream) => u.dropCallsBeforeCommit(1), 2],
  ] as const)(
    '%s, with an order and a top-up bought once each and charged once each',
    async (_, breakIt, sent) => {
      const buyer = await shop.buyer(price + topupPrice);
      const ordersBefore = upstream.arrivals('order');
      breakIt(upstream);
      const done = await buy(buyer, upstream.packageId, 1, { reference: 'booking-1' });
      expect(done).toMatchObject({ mode: 'live', status: 'issued', reference: 'booking-1' });
      expect(upstream.arrivals('order') - ordersBefore, 'orders sent').toBe(sent);
      const topupsBefore = upstream.arrivals('topup');
      breakIt(upstream);
      const topup = await topUp(buyer, esimIdsOf(done)[0]!, upstream.topupPackageId, { reference: 'more-1' });
      expect(await settled(buyer, topup)).toMatchObject({ status: 'completed', reference: 'more-1' });
      expect(upstream.arrivals('topup') - topupsBefore, 'top-ups sent').toBe(sent);
      expect(await statement(buyer)).toEqual([
        ['deposit', price + topupPrice],
        ['charge', -price],
        ['charge', -topupPrice],
      ]);
    },
  );

  it('fails and releases the hold when the package is out of stock', async () => {
    const buyer = await shop.buyer(3 * price);
    upstream.runOutOfStock();
    expect(await buy(buyer, upstream.packageId, 2)).toMatchObject({
      status: 'failed',
      failure: { code: 'package_unavailable' },
      refunded: { amount: 2 * price, currency: 'USD' },
    });
    expect(await money(buyer)).toEqual([3 * price, 0, 3 * price]);
    expect(await statement(buyer)).toEqual([['deposit', 3 * price]]);
  });

  it('fails with provider_unavailable when our account at the provider is empty', async () => {
    const buyer = await shop.buyer(price);
    upstream.runOutOfFunds();
    const done = await buy(buyer, upstream.packageId);
    expect(done).toMatchObject({ status: 'failed', failure: { code: 'provider_unavailable' } });
    expect(await money(buyer)).toEqual([price, 0, price]);
    expect((await readFeed(buyer.api)).map(({ type, data }) => [type, data.code])).toEqual([
      ['order.failed', 'provider_unavailable'],
    ]);
  });

  it('fails with price_changed after a price rise, refreshes the catalog and sells at the new price', async () => {
    const buyer = await shop.buyer(10 * price);
    upstream.raisePrice();
    const done = await buy(buyer, upstream.packageId);
    expect(done).toMatchObject({ status: 'failed', failure: { code: 'price_changed' } });
    expect(await money(buyer)).toEqual([10 * price, 0, 10 * price]);
    const raised = await raisedPrice(upstream.packageId, price);
    expect(await buy(buyer, upstream.packageId)).toMatchObject({
      status: 'issued',
      unit_price: { amount: raised, currency: 'USD' },
    });
  });

  it('can be canceled before the download, with a full refund', async () => {
    const buyer = await shop.buyer(2 * price);
    const done = await buy(buyer, upstream.packageId, 2);
    await cancel(buyer, done);
    const canceled = await settled(buyer, done);
    expect(canceled).toMatchObject({
      status: 'canceled',
      refunded: { amount: 2 * price, currency: 'USD' },
      cancel_failure: null,
      esims: [{ status: 'canceled' }, { status: 'canceled' }],
    });
    expect(await statement(buyer)).toEqual([
      ['deposit', 2 * price],
      ['charge', -2 * price],
      ['refund', 2 * price],
    ]);
    expectProblem(await buyer.api.post(`/v1/orders/${done['id']}/cancel`), 409, 'order_not_cancelable');
  });

  it('cannot be canceled after the download: the provider refuses, and so do we once we know', async () => {
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

describe('a live order at any provider', () => {
  let price: number;
  beforeEach(async () => {
    price = await currentPrice(zendit.packageId);
  });

  it('is a new purchase when its key is reused after 24 hours', async () => {
    const buyer = await shop.buyer(2 * price);
    const idempotencyKey = randomUUID();
    const place = async (): Promise<Json> => {
      const answer = await buyer.api.post('/v1/orders', { package_id: zendit.packageId }, { idempotencyKey });
      expect(answer.status, answer.text).toBe(202);
      return settled(buyer, answer.body.data as Json);
    };
    const first = await place();
    // The purge does this after the 24 hours.
    await shop.database.pool.query('DELETE FROM idempotency_keys WHERE key = $1', [idempotencyKey]);
    const second = await place();
    expect([first['status'], second['status']]).toEqual(['issued', 'issued']);
    expect(second['id']).not.toBe(first['id']);
    for (const { id } of [first, second] as { id: string }[])
      expect(zendit.account(await shop.referenceOf(id)).bought).toBe(1);
  });

  it('accepts a reused ICCID and one with a wrong check digit (D23)', async () => {
    const buyer = await shop.buyer(3 * price);
    const iccids: string[] = [];
    for (const kind of ['reused', 'reused', 'not_luhn'] as const) {
      zendit.issueIccids(kind);
      const done = await buy(buyer, zendit.packageId);
      expect(done).toMatchObject({ status: 'issued' });
      iccids.push(done['esims'][0].iccid as string);
    }
    expect(iccids[0]).toBe(iccids[1]);
    expect(luhnSum(iccids[2]!) % 10).not.toBe(0);
  });

  it('is refused with 402, as is a top-up, when the balance is too low, and changes nothing', async () => {
    const topupPrice = await currentPrice(zendit.topupPackageId);
    const rest = Math.min(price, topupPrice) - 1;
    const buyer = await shop.buyer(price + rest);
    const done = await buy(buyer, zendit.packageId);
    const arrivals = zendit.arrivals();
    const body = { package_id: zendit.packageId, reference: 'booking-2', quantity: 1 };
    expectProblem(await buyer.api.post('/v1/orders', body), 402, 'insufficient_balance');
    const topup = { esim_id: esimIdsOf(done)[0], package_id: zendit.topupPackageId };
    expectProblem(await buyer.api.post('/v1/topups', topup), 402, 'insufficient_balance');
    expect(await money(buyer)).toEqual([rest, 0, rest]);
    expect(await readAll(buyer, '/v1/orders')).toHaveLength(1);
    expect(await readAll(buyer, '/v1/topups')).toEqual([]);
    expect(await readFeed(buyer.api)).toHaveLength(1);
    expect(zendit.arrivals()).toBe(arrivals);
    await shop.deposit(buyer, price - rest, 'what-is-missing');
    expect(await buy(buyer, zendit.packageId, 1, { reference: 'booking-2' })).toMatchObject({
      status: 'issued',
    });
    expect(await money(buyer)).toEqual([0, 0, 0]);
  });
});

describe('Zendit', () => {
  let price: number;
  beforeEach(async () => {
    price = await currentPrice(zendit.packageId);
  });

  it('issues the other eSIMs and refunds the rest when it runs out of stock in the middle', async () => {
    const buyer = await shop.buyer(5 * price);
    zendit.endPurchases(null, 'OUT_OF_STOCK', null, 'OUT_OF_STOCK', null);
    expect(await buy(buyer, zendit.packageId, 5)).toMatchObject({
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

  it('leaves an order to support when it refuses the last purchase without a reason', async () => {
    const buyer = await shop.buyer(3 * price);
    const before = zendit.arrivals();
    zendit.sellOnly(2);
    zendit.dropCallsBeforeCommit(1);
    const { id } = await order(buyer, zendit.packageId, 3);
    // Zendit lost the call for one of the three eSIMs. It refuses repetitions and knows only the other two purchases.
    await eventually('the last one was refused', () => zendit.arrivals() - before > 3);
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
  });

  it('may charge more than it listed: support is alerted, and the next order pays the new price', async () => {
    const buyer = await shop.buyer(10 * price);
    // Otherwise the worker would skip this read because it read the list recently.
    await shop.database.pool.query(
      `UPDATE catalog_syncs SET started_at = started_at - interval '20 minutes'`,
    );
    zendit.sellDearer();
    expect(await buy(buyer, zendit.packageId)).toMatchObject({ status: 'issued', unit_price: usd(price) });
    const raised = await raisedPrice(zendit.packageId, price);
    expect(await buy(buyer, zendit.packageId)).toMatchObject({ unit_price: usd(raised) });
    const { data } = (await shop.office.admin.get('/internal/v1/alerts?type=order.needs_review')).body;
    const ofPrices = (data as Json[]).filter(({ details }) => details.what === 'sold_dearer');
    expect(ofPrices).toHaveLength(1);
  });
});

describe('eSIM Access', () => {
  let buyer: Buyer;
  let price: number;
  let topupPrice: number;
  beforeEach(async () => {
    price = await currentPrice(esimAccess.packageId);
    topupPrice = await currentPrice(esimAccess.topupPackageId);
    buyer = await shop.buyer(5 * price);
  });

  it('is polled while it allocates the profiles (200010)', async () => {
    const before = esimAccess.arrivals('order');
    esimAccess.allocateForLooks(2);
    expect(await buy(buyer, esimAccess.packageId, 2)).toMatchObject({ status: 'issued', quantity_issued: 2 });
    expect(esimAccess.arrivals('order') - before, 'placements sent').toBe(1);
  });

  it('issues an order completely or not at all, and too little stock refunds everything', async () => {
    esimAccess.leaveStock(3);
    expect(await buy(buyer, esimAccess.packageId, 5)).toMatchObject({
      status: 'failed',
      quantity_issued: 0,
      quantity_failed: 5,
      failure: { code: 'package_unavailable' },
      refunded: usd(5 * price),
    });
    expect(await money(buyer)).toEqual([5 * price, 0, 5 * price]);
    expect(await buy(buyer, esimAccess.packageId, 3)).toMatchObject({ status: 'issued', quantity_issued: 3 });
  });

  it.each([
    ['completed', (u: EsimAccessUpstream) => u.dropAnswersAfterCommit(1)],
    ['failed', (u: EsimAccessUpstream) => u.dropCallsBeforeCommit(1)],
  ] as const)('hides top-ups, so support marks an uncertain one %s', async (end, breakIt) => {
    buyer = await shop.buyer(price + topupPrice);
    const [esimId] = esimIdsOf(await buy(buyer, esimAccess.packageId));
    const before = esimAccess.arrivals('topup');
    esimAccess.hidePurchasesFromLooks();
    breakIt(esimAccess);
    const { id } = await topUp(buyer, esimId!, esimAccess.topupPackageId);
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
    expect(esimAccess.arrivals('topup') - before, 'placements sent').toBe(1);
    const rest = end === 'completed' ? 0 : topupPrice;
    expect(await money(buyer)).toEqual([rest, 0, rest]);
    const total = (await buyer.api.get(`/v1/esims/${esimId}`)).body.data.data.total_bytes as number;
    expect(total / GB).toBeCloseTo(end === 'completed' ? 2 : 1, 0);
  });

  it('refuses a top-up after a price rise, which is refunded and then sold at the new price', async () => {
    buyer = await shop.buyer(price + 10 * topupPrice);
    const [esimId] = esimIdsOf(await buy(buyer, esimAccess.packageId));
    esimAccess.raiseTopupPrice();
    const refused = await settled(buyer, await topUp(buyer, esimId!, esimAccess.topupPackageId));
    expect(refused).toMatchObject({ status: 'failed', failure: { code: 'price_changed' } });
    expect(await money(buyer)).toEqual([10 * topupPrice, 0, 10 * topupPrice]);
    const raised = await raisedPrice(esimAccess.topupPackageId, topupPrice);
    const sold = await settled(buyer, await topUp(buyer, esimId!, esimAccess.topupPackageId));
    expect(sold).toMatchObject({ status: 'completed', price: usd(raised) });
  });
});

function usd(amount: number): { readonly amount: number; readonly currency: string } {
  return { amount, currency: 'USD' };
}

function luhnSum(digits: string): number {
  return [...digits].reverse().reduce((sum, text, i) => {
    const value = Number(text) * (i % 2 === 1 ? 2 : 1);
    return sum + (value > 9 ? value - 9 : value);
  }, 0);
}
