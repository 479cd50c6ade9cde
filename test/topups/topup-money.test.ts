import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ProviderTopupState } from '../../src/providers/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';
import { balanceOf, PRICE, ScriptedShop, type TopupBuyer } from './scripted-shop.js';
import { placeTopup, TOPUP_1GB_7D, TOPUP_DAYS, topupEnded } from './topup-steps.js';

const DEPOSIT = 1_000;
const COST = 250;
const MARGIN_BPS = 2_001;
/** 250 cents plus 20.01 %, rounded up. */
const WITH_MARGIN = 301;

let shop: ScriptedShop;
let heldWhileAsked: number[];

beforeAll(async () => {
  shop = await ScriptedShop.open(DEPOSIT);
  await shop.database.pool.query(`UPDATE packages SET cost_micros = $1 WHERE mode = 'live'`, [COST * 10_000]);
});

afterAll(() => shop.close());

async function accept(answer: ProviderTopupState): Promise<string> {
  const { id } = await shop.accept([
    async () => {
      heldWhileAsked = await shop.balance();
      return answer;
    },
  ]);
  return id;
}

describe('the price of a live top-up', () => {
  it('is held at acceptance and released when the top-up fails', async () => {
    const failure = { code: 'provider_rejected', reason: 'No.' } as const;
    const id = await accept({ state: 'rejected', failure });
    expect(await topupEnded(shop.live, id)).toMatchObject({ status: 'failed', failure });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await shop.balance()).toEqual([DEPOSIT, 0, DEPOSIT]);
  });

  it('is captured when the top-up completes, as a charge that names it', async () => {
    const id = await accept({ state: 'completed', totalBytes: null, expiresAt: null });
    expect(await topupEnded(shop.live, id)).toMatchObject({ status: 'completed', mode: 'live' });
    expect(heldWhileAsked).toEqual([DEPOSIT, PRICE, DEPOSIT - PRICE]);
    expect(await shop.balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
    const [charge] = (await shop.live.get('/v1/transactions')).body.data as Json[];
    expect(charge).toMatchObject({ type: 'charge', topup_id: id, amount: { amount: -PRICE } });
  });

  it("is stored with the provider's cost and package id", async () => {
    const { rows } = await shop.database.pool.query(
      'SELECT DISTINCT provider, upstream_package_id, unit_cost_micros::int, unit_cost_currency FROM topups',
    );
    expect(rows).toEqual([
      {
        provider: shop.upstream.name,
        upstream_package_id: 'TOPUP_UP_1',
        unit_cost_micros: 2_500_000,
        unit_cost_currency: 'USD',
      },
    ]);
  });

  it('is refused when the wallet does not cover it, and no top-up is created', async () => {
    const setPrice = (amount: number) =>
      shop.database.pool.query(`UPDATE packages SET price_amount = $2 WHERE mode = 'live' AND id = $1`, [
        TOPUP_1GB_7D,
        amount,
      ]);
    await setPrice(10_000);
    const before = (await shop.live.get('/v1/topups')).body.data as Json[];
    const refused = accept({ state: 'completed', totalBytes: null, expiresAt: null });
    await expect(refused).rejects.toMatchObject({ code: 'insufficient_balance', status: 402 });
    await setPrice(PRICE);
    expect((await shop.live.get('/v1/topups')).body.data).toEqual(before);
    expect(await shop.balance()).toEqual([DEPOSIT - PRICE, 0, DEPOSIT - PRICE]);
  });
});

describe('a live top-up through the partner API', () => {
  const setAvailable = (id: string, available: boolean) =>
    shop.database.pool.query(`UPDATE packages SET available = $2 WHERE mode = 'live' AND id = $1`, [
      id,
      available,
    ]);

  it('is neither offered nor accepted for a package of another provider', async () => {
    const offered = (await shop.live.get(`/v1/esims/${shop.esimId}/topup-packages`)).body.data as Json[];
    expect(offered.map((item) => item['id'])).toEqual([TOPUP_1GB_7D]);
    const request = { esim_id: shop.esimId, package_id: TOPUP_DAYS };
    const tooCheap = { ...request, max_price: { amount: 1, currency: 'USD' } };
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'topup_not_supported');
    expectProblem(await shop.live.post('/v1/topups', tooCheap), 409, 'topup_not_supported');
    await setAvailable(TOPUP_DAYS, false);
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'topup_not_supported');
  });

  it('returns package_unavailable for a matching package that is not sold now, whatever its price', async () => {
    const max_price = { amount: 1, currency: 'USD' };
    await setAvailable(TOPUP_1GB_7D, false);
    const request = { esim_id: shop.esimId, package_id: TOPUP_1GB_7D, max_price };
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'package_unavailable');
    await setAvailable(TOPUP_1GB_7D, true);
    expectProblem(await shop.live.post('/v1/topups', request), 409, 'price_changed');
  });

  it('returns 503 while its provider is not connected, and holds no money', async () => {
    const before = await shop.balance();
    const answer = await shop.live.post('/v1/topups', { esim_id: shop.esimId, package_id: TOPUP_1GB_7D });
    expectProblem(answer, 503, 'service_unavailable');
    expect(await shop.balance()).toEqual(before);
  });
});

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

describe('the price of a top-up', () => {
  beforeAll(() => shop.connectPartnerApi());

  it.each<[string, object | null, number]>([
    ['the catalog price without a price list', null, PRICE],
    ["the cost plus the partner's margin", { margin_bps: MARGIN_BPS }, WITH_MARGIN],
    ["the list's own price, whatever the margin", own(usd(299), MARGIN_BPS), 299],
    ['zero with a list price of 0', own(usd(0)), 0],
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

  it("has the currency of the partner's own price, and dollars do not pay for it", async () => {
    const { live, esimId } = await buyerWith(own({ amount: 299, currency: 'EUR' }));
    const request = { esim_id: esimId, package_id: TOPUP_1GB_7D };
    const limited = { ...request, max_price: usd(PRICE) };
    expectProblem(await live.post('/v1/topups', limited), 409, 'price_changed');
    expectProblem(await live.post('/v1/topups', request), 402, 'insufficient_balance');
  });
});
