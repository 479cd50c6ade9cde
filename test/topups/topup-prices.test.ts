import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';
import { balanceOf, PRICE, ScriptedShop, type TopupBuyer } from './scripted-shop.js';
import { placeTopup, TOPUP_1GB_7D, topupEnded } from './topup-steps.js';

const DEPOSIT = 2 * PRICE;
const COST = 250;
const MARGIN_BPS = 2_001;
/** 250 cents and 20.01 % of them, rounded up. */
const WITH_MARGIN = 301;

let shop: ScriptedShop;
let heldWhileAsked: number[];

beforeAll(async () => {
  shop = await ScriptedShop.open(DEPOSIT);
  shop.connectPartnerApi();
  await shop.database.pool.query(`UPDATE packages SET cost_micros = $1 WHERE mode = 'live'`, [COST * 10_000]);
});

afterAll(() => shop.close());

async function buyerWith(list: object | null): Promise<TopupBuyer> {
  const buyer = await shop.buyer(DEPOSIT);
  shop.upstream.otherwise = async () => {
    heldWhileAsked = await balanceOf(buyer.live);
    return { state: 'completed', totalBytes: null, expiresAt: null };
  };
  if (list === null) return buyer;
  const path = `/internal/v1/partners/${buyer.id}/price-list`;
  const answer = await shop.office.admin.call('PUT', path, { body: list });
  expect(answer.status, answer.text).toBe(200);
  return buyer;
}

const usd = (amount: number) => ({ amount, currency: 'USD' });
const own = (price: object, margin_bps: number | null = null) => ({
  margin_bps,
  prices: [{ package_id: TOPUP_1GB_7D, price }],
});

describe('what a live top-up costs', () => {
  it.each<[string, object | null, number]>([
    ['the price of the catalogue without a list', null, PRICE],
    ['cost and margin with a margin', { margin_bps: MARGIN_BPS }, WITH_MARGIN],
    ["the list's own price, whatever the margin", own(usd(299), MARGIN_BPS), 299],
    ['nothing at an own price of 0', own(usd(0)), 0],
  ])('is %s: offered, held and charged, and never above max_price', async (_what, list, price) => {
    const { live, esimId } = await buyerWith(list);
    const [offered] = (await live.get(`/v1/esims/${esimId}/topup-packages`)).body.data as Json[];
    expect(offered).toMatchObject({ id: TOPUP_1GB_7D, price: usd(price) });

    const atMost = (max_price: object) => ({ esim_id: esimId, package_id: TOPUP_1GB_7D, max_price });
    if (price > 0) expectProblem(await live.post('/v1/topups', atMost(usd(price - 1))), 409, 'price_changed');
    const euros = { amount: PRICE, currency: 'EUR' };
    expectProblem(await live.post('/v1/topups', atMost(euros)), 409, 'price_changed');
    expect(await balanceOf(live)).toEqual([DEPOSIT, 0, DEPOSIT]);

    const topup = await placeTopup(live, atMost(usd(price)));
    expect(topup['price']).toEqual(usd(price));
    expect(await topupEnded(live, topup['id'] as string)).toMatchObject({ status: 'completed' });
    expect(heldWhileAsked).toEqual([DEPOSIT, price, DEPOSIT - price]);
    expect(await balanceOf(live)).toEqual([DEPOSIT - price, 0, DEPOSIT - price]);
    const charges = ((await live.get('/v1/transactions')).body.data as Json[])
      .filter(({ type }) => type === 'charge')
      .map(({ topup_id, amount }) => [topup_id as string, amount as object]);
    expect(charges).toEqual(price > 0 ? [[topup['id'], usd(-price)]] : []);
  });

  it('is in the currency of the own price: dollars do not pay for it', async () => {
    const { live, esimId } = await buyerWith(own({ amount: 299, currency: 'EUR' }));
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D };
    const limited = { ...request, max_price: usd(PRICE) };
    expectProblem(await live.post('/v1/topups', limited), 409, 'price_changed');
    expectProblem(await live.post('/v1/topups', request), 402, 'insufficient_balance');
  });
});
