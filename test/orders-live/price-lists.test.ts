import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { balance, LiveShop, type LiveBuyer, PACKAGE, PRICE } from './live-shop.js';

const COST = 250;
const MARGIN_BPS = 2_001;
/** 250 cents and 20.01 % of them, rounded up. */
const WITH_MARGIN = 301;

let shop: LiveShop;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.database.pool.query(`UPDATE packages SET cost_micros = $1 WHERE mode = 'live'`, [COST * 10_000]);
});

afterAll(() => shop.close());

async function buyerWith(list: object | null): Promise<LiveBuyer> {
  const buyer = await shop.buyer(2 * PRICE);
  if (list === null) return buyer;
  const answer = await shop.office.admin.call('PUT', `/internal/v1/partners/${buyer.id}/price-list`, {
    body: list,
  });
  expect(answer.status, answer.text).toBe(200);
  return buyer;
}

const usd = (amount: number) => ({ amount, currency: 'USD' });
const own = (price: object, margin_bps: number | null = null) => ({
  margin_bps,
  prices: [{ package_id: PACKAGE, price }],
});

describe('what a live order costs', () => {
  it.each<[string, object | null, number]>([
    ['the price of the catalogue without a list', null, PRICE],
    ['that price with an empty list', {}, PRICE],
    ['cost and margin with a margin', { margin_bps: MARGIN_BPS }, WITH_MARGIN],
    ["the list's own price, whatever the margin", own(usd(299), MARGIN_BPS), 299],
    ['nothing at an own price of 0', own(usd(0)), 0],
    [
      'that price when only others have their own',
      { prices: [{ package_id: 'pkg_x', price: usd(1) }] },
      PRICE,
    ],
  ])('is %s, and the catalogue shows it', async (_what, list, price) => {
    const buyer = await buyerWith(list);
    const shown = (await buyer.live.get(`/v1/catalog/${PACKAGE}`)).body.data;
    expect(shown.price).toEqual(usd(price));
    const atMost = (amount: number) => ({ package_id: PACKAGE, max_unit_price: usd(amount) });
    const order = await buyer.live.post('/v1/orders', atMost(price));
    expect(order.status, order.text).toBe(202);
    expect(order.body.data).toMatchObject({ unit_price: usd(price), total: usd(price) });
    expect(await balance(buyer)).toEqual({ posted: 2 * PRICE, held: price, available: 2 * PRICE - price });
    if (price === 0) return;
    const refused = await buyer.live.post('/v1/orders', atMost(price - 1));
    expect([refused.status, refused.body.code]).toEqual([409, 'price_changed']);
  });

  it('is in the currency of the own price: a limit in another one is no limit that holds', async () => {
    const buyer = await buyerWith(own({ amount: 299, currency: 'EUR' }));
    const limit = { package_id: PACKAGE, max_unit_price: usd(PRICE) };
    const refused = await buyer.live.post('/v1/orders', limit);
    expect([refused.status, refused.body.code]).toEqual([409, 'price_changed']);
    const unpaid = await buyer.live.post('/v1/orders', { package_id: PACKAGE });
    expect([unpaid.status, unpaid.body.code]).toEqual([402, 'insufficient_balance']);
  });
});
