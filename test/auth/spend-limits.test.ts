import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeySpending } from '../../src/auth/index.js';
import { type ApiAnswer, eventually, type HttpClient } from '../harness/index.js';
import { issueEsim, type Json, orderEnded, placeOrder } from '../harness/order-steps.js';
import { StatementCounter } from '../harness/statement-counter.js';
import { balance, LiveShop, PACKAGE as LIVE_PACKAGE, PRICE } from '../orders-live/live-shop.js';
import { BASE, topUp, TOPUP_1GB_7D, TOPUP_FAIL } from '../topups/topup-steps.js';

const usd = (amount: number): Json => ({ amount, currency: 'USD' });
const perDay = (amount: number): Json => ({ amount: usd(amount), per: 'day' });

/** A new key, and the API called with it. */
interface Buyer {
  readonly partnerId: string;
  readonly key: Json;
  readonly api: HttpClient;
}

let shop: LiveShop;
let basePrice: number;
let topupPrice: number;

beforeAll(async () => {
  shop = await LiveShop.open();
  await shop.startWorker();
  const { api } = await buyer('sandbox', null);
  const priceOf = async (id: string): Promise<number> =>
    (await api.get(`/v1/catalog/${id}`)).body.data.price.amount as number;
  [basePrice, topupPrice] = await Promise.all([priceOf(BASE), priceOf(TOPUP_1GB_7D)]);
});
afterAll(() => shop.close());

async function buyer(mode: 'sandbox' | 'live', spendLimit: Json | null, partnerId?: string): Promise<Buyer> {
  const owner = partnerId ?? (await shop.office.createPartner()).id;
  const answer = await shop.office.admin.post(`/internal/v1/partners/${owner}/api-keys`, {
    mode,
    spend_limit: spendLimit,
  });
  expect(answer.status, answer.text).toBe(201);
  const key = answer.body.data as Json;
  expect(key['spend_limit']).toEqual(spendLimit);
  return { partnerId: owner, key, api: shop.api.partnerApi(key['key'] as string) };
}

async function rotate({ partnerId, key }: Buyer): Promise<Buyer> {
  const path = `/internal/v1/partners/${partnerId}/api-keys/${key['id']}/rotate`;
  const answer = await shop.office.admin.post(path);
  expect(answer.status, answer.text).toBe(200);
  const successor = answer.body.data as Json;
  return { partnerId, key: successor, api: shop.api.partnerApi(successor['key'] as string) };
}

/** A busy machine may have no connection in time: the call then gets 503 or 429, and is repeated. */
async function order(api: HttpClient, body: Json, key = randomUUID()): Promise<ApiAnswer> {
  const answer = await api.post('/v1/orders', body, { idempotencyKey: key });
  return answer.status === 503 || answer.status === 429 ? order(api, body, key) : answer;
}

const remaining = async ({ api }: Buyer): Promise<number> =>
  (await api.get('/v1/me')).body.data.spend_limit.remaining.amount as number;

function expectRefused({ status, body }: ApiAnswer): void {
  expect([status, body.code]).toEqual([402, 'spend_limit_reached']);
}

describe('the spend limit of a key', () => {
  it('is shown with what is left of it, and is null for a key without one', async () => {
    const limited = await buyer('sandbox', perDay(3 * basePrice));
    expect((await order(limited.api, { package_id: BASE, quantity: 2 })).status).toBe(202);
    expect((await limited.api.get('/v1/me')).body.data).toMatchObject({
      scopes: null,
      spend_limit: { amount: usd(3 * basePrice), per: 'day', remaining: usd(basePrice) },
    });
    const { api } = await buyer('sandbox', null);
    expect((await api.get('/v1/me')).body.data).toMatchObject({ scopes: null, spend_limit: null });
  });

  it.each(['sandbox', 'live'] as const)(
    'is never exceeded by 200 parallel orders over a rotation in %s, and is reached exactly',
    async (mode) => {
      const [package_id, price] = mode === 'live' ? [LIVE_PACKAGE, PRICE] : [BASE, basePrice];
      const fitting = 23;
      const old = await buyer(mode, perDay(fitting * price + price - 1));
      if (mode === 'live') await shop.deposit(old.partnerId, 200 * price);
      const orders = (api: HttpClient, count: number): Promise<ApiAnswer[]> =>
        Promise.all(Array.from({ length: count }, () => order(api, { package_id })));
      const first = orders(old.api, 100);
      const successor = await rotate(old);
      const answers = [...(await first), ...(await orders(successor.api, 100))];
      const refused = answers.filter(({ status }) => status !== 202);
      refused.forEach(expectRefused);
      expect(refused).toHaveLength(200 - fitting);
      expect(await Promise.all([remaining(old), remaining(successor)])).toEqual([price - 1, price - 1]);
      const { rows } = await shop.database.pool.query(
        'SELECT count(*)::int AS orders FROM orders WHERE partner_id = $1',
        [old.partnerId],
      );
      expect(rows).toEqual([{ orders: fitting }]);
    },
  );

  it('leaves the wallet alone when it refuses an order, and stores the refusal', async () => {
    const limited = await buyer('live', perDay(PRICE - 1));
    await shop.deposit(limited.partnerId, 10 * PRICE);
    const key = randomUUID();
    const refused = await order(limited.api, { package_id: LIVE_PACKAGE }, key);
    expectRefused(refused);
    const again = await order(limited.api, { package_id: LIVE_PACKAGE }, key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([refused.text, 'true']);
    const owner = { id: limited.partnerId, live: limited.api };
    expect(await balance(owner)).toEqual({ posted: 10 * PRICE, held: 0, available: 10 * PRICE });
  });

  it('counts nothing for an order that the wallet does not cover', async () => {
    const limited = await buyer('live', perDay(10 * PRICE));
    const refused = await order(limited.api, { package_id: LIVE_PACKAGE });
    expect([refused.status, refused.body.code]).toEqual([402, 'insufficient_balance']);
    expect(await remaining(limited)).toBe(10 * PRICE);
  });

  it('counts top-ups', async () => {
    const limited = await buyer('sandbox', perDay(basePrice + topupPrice));
    const esim = await issueEsim(limited.api, BASE);
    const buyTopup = (): Promise<ApiAnswer> =>
      limited.api.post('/v1/topups', { esim_id: esim, package_id: TOPUP_1GB_7D });
    expect((await buyTopup()).status).toBe(202);
    expect(await remaining(limited)).toBe(0);
    expectRefused(await buyTopup());
  });

  it('counts nothing that is released or refunded', async () => {
    const limited = await buyer('sandbox', perDay(10_000));
    const place = async (package_id: string, quantity: number): Promise<Json> => {
      const { id } = await placeOrder(limited.api, { package_id, quantity });
      return orderEnded(limited.api, id as string);
    };
    await place('pkg_test_out_of_stock', 2);
    expect(await remaining(limited)).toBe(10_000);
    const partly = await place('pkg_test_partial', 5);
    const issuedPrice = 3 * (partly['unit_price'].amount as number);
    expect(await remaining(limited)).toBe(10_000 - issuedPrice);
    const esim_id = partly['esims'][0].esim_id as string;
    await topUp(limited.api, esim_id, TOPUP_FAIL);
    expect(await remaining(limited)).toBe(10_000 - issuedPrice);
    const canceled = await place(BASE, 1);
    await limited.api.post(`/v1/orders/${canceled['id']}/cancel`, {});
    await eventually('it is refunded', async () => (await remaining(limited)) === 10_000 - issuedPrice);
  });

  it('begins again on the next UTC day', async () => {
    const limited = await buyer('sandbox', perDay(basePrice));
    expect((await order(limited.api, { package_id: BASE })).status).toBe(202);
    expectRefused(await order(limited.api, { package_id: BASE }));
    await shop.database.pool.query('UPDATE key_spending SET day = day - 1 WHERE first_key_id = $1', [
      limited.key['id'],
    ]);
    expect(await remaining(limited)).toBe(basePrice);
    expect((await order(limited.api, { package_id: BASE })).status).toBe(202);
    expectRefused(await order(limited.api, { package_id: BASE }));
  });

  it('continues over every rotation of a chain', async () => {
    const first = await buyer('sandbox', perDay(3 * basePrice));
    expect((await order(first.api, { package_id: BASE })).status).toBe(202);
    const second = await rotate(first);
    expect((await order(second.api, { package_id: BASE })).status).toBe(202);
    const third = await rotate(second);
    expect(third.key['spend_limit']).toEqual(perDay(3 * basePrice));
    expect(await remaining(third)).toBe(basePrice);
    expectRefused(await order(third.api, { package_id: BASE, quantity: 2 }));
  });

  it('is separate for two keys of a partner', async () => {
    const one = await buyer('sandbox', perDay(basePrice));
    const other = await buyer('sandbox', perDay(basePrice), one.partnerId);
    expect((await order(one.api, { package_id: BASE })).status).toBe(202);
    expect((await order(other.api, { package_id: BASE })).status).toBe(202);
    expectRefused(await order(one.api, { package_id: BASE }));
  });

  it('refuses a price in another currency, and says so', async () => {
    const { api } = await buyer('sandbox', { amount: { amount: 1_000_000, currency: 'EUR' }, per: 'day' });
    const refused = await order(api, { package_id: BASE });
    expectRefused(refused);
    expect(refused.body.detail).toContain('The price is in USD, and the spend limit of this key is in EUR.');
  });

  it('of 0 allows no purchase that costs money', async () => {
    const { api } = await buyer('sandbox', perDay(0));
    expectRefused(await order(api, { package_id: BASE }));
  });

  it('costs a key without a limit no statement', async () => {
    const [free, limited] = [await buyer('sandbox', null), await buyer('sandbox', perDay(basePrice))];
    const statements = new StatementCounter('partner-esim-api');
    const spends = (): number =>
      statements.statements
        .filter(({ text }) => text.startsWith('WITH key_limit'))
        .reduce((sum, { count }) => sum + count, 0);
    try {
      expect((await order(free.api, { package_id: BASE })).status).toBe(202);
      expect(spends()).toBe(0);
      expect((await order(limited.api, { package_id: BASE })).status).toBe(202);
      expect(spends()).toBe(1);
    } finally {
      statements.stop();
    }
  });

  it('is forgotten after two days', async () => {
    const limited = await buyer('sandbox', perDay(2 * basePrice));
    expect((await order(limited.api, { package_id: BASE })).status).toBe(202);
    await shop.database.pool.query(
      `INSERT INTO key_spending
       SELECT first_key_id, day - n, amount FROM key_spending, generate_series(1, 3) AS n WHERE first_key_id = $1`,
      [limited.key['id']],
    );
    expect(await shop.api.process.api!.nest.get(KeySpending, { strict: false }).purge(1_000)).toBe(2);
    expect(await remaining(limited)).toBe(basePrice);
  });
});
