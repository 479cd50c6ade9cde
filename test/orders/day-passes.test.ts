import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

const PASS = 'pkg_jp_2gb_daily';
const FIXED = 'pkg_jp_3gb_30d';
const TOPUP = 'pkg_jp_topup_2gb_daily';
const DAY_MS = 86_400_000;

let service: TestService;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
});
afterAll(() => service.stop());

// Answers of every shape, as in http-client.ts.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const read = async (path: string): Promise<any> => (await api.get(path)).body.data;
const refused = (message: string) => ({ errors: [{ pointer: '/days', message }] });

describe('a package sold by the day', () => {
  it('states its days and the price of one, and is shown for any number of them', async () => {
    const one = await read(`/v1/catalog/${PASS}`);
    expect(one).toMatchObject({
      data_label: '2 GB/day',
      plan: { kind: 'daily', days: { min: 1, max: 30 } },
      price_per_day: one.price,
      validity_days: 1,
      data_bytes: 2e9,
    });
    expect(await read(`/v1/catalog/${PASS}?days=7`)).toEqual({
      ...one,
      price: { amount: 7 * one.price.amount, currency: 'USD' },
      retail_price: { amount: 7 * one.retail_price.amount, currency: 'USD' },
      data_bytes: 14e9,
      validity_days: 7,
    });
    expect(await read(`/v1/catalog/${FIXED}`)).toMatchObject({ plan: { days: null }, price_per_day: null });
  });

  it('has an ETag per number of days', async () => {
    const tags = await Promise.all(
      ['', '?days=2', '?days=3'].map(async (days) => (await api.get(`/v1/catalog/${PASS}${days}`)).headers),
    );
    expect(new Set(tags.map((headers) => headers.get('etag'))).size).toBe(3);
  });

  it.each([
    ['?days=31', 400],
    ['?days=0', 400],
    ['?days=1.5', 400],
    ['?days=30', 200],
  ])('answers %s with %i', async (query, status) => {
    expect((await api.get(`/v1/catalog/${PASS}${query}`)).status).toBe(status);
  });
});

describe('an order of a day pass', () => {
  it('costs seven times as much for seven days, lasts seven days, and shows its days', async () => {
    const { price } = await read(`/v1/catalog/${PASS}`);
    const accepted = await placeOrder(api, { package_id: PASS, days: 7, quantity: 2 });
    expect(accepted).toMatchObject({
      days: 7,
      unit_price: { amount: 7 * price.amount, currency: 'USD' },
      total: { amount: 14 * price.amount, currency: 'USD' },
    });
    const order = await orderEnded(api, accepted['id'] as string);
    const esimId = order['esims'][0].esim_id as string;
    expect(await read(`/v1/esims/${esimId}`)).toMatchObject({ days: 7, data: { total_bytes: 14e9 } });
    await api.post(`/v1/sandbox/esims/${esimId}/activate`, {});
    const { activated_at, expires_at } = await read(`/v1/esims/${esimId}`);
    expect(Date.parse(expires_at as string) - Date.parse(activated_at as string)).toBe(7 * DAY_MS);
  });

  it('is for one day without a number', async () => {
    expect(await placeOrder(api, { package_id: PASS })).toMatchObject({ days: 1 });
    expect(await placeOrder(api, { package_id: FIXED })).toMatchObject({ days: null });
  });

  it('compares max_unit_price with the price of all days', async () => {
    const { price } = await read(`/v1/catalog/${PASS}`);
    const body = { package_id: PASS, days: 3 };
    const max = (amount: number) => ({ ...body, max_unit_price: { amount, currency: 'USD' } });
    expect((await api.post('/v1/orders', max(3 * price.amount))).status).toBe(202);
    const answer = await api.post('/v1/orders', max(3 * price.amount - 1));
    expect([answer.status, answer.body.code]).toEqual([409, 'price_changed']);
  });

  it.each([
    ['for a package of fixed days', { package_id: FIXED, days: 1 }, 'must be left out'],
    ['beyond the maximum of the package', { package_id: PASS, days: 31 }, 'must be between 1 and 30'],
    ['of zero', { package_id: PASS, days: 0 }, 'must be at least 1'],
    ['of a fraction', { package_id: PASS, days: 1.5 }, 'must be a whole number'],
    ['as text', { package_id: PASS, days: '7' }, 'must be a whole number'],
  ])('refuses a number of days %s, and changes nothing', async (_what, body, message) => {
    const before = await read('/v1/orders');
    const answer = await api.post('/v1/orders', body);
    expect([answer.status, answer.body.code], answer.text).toEqual([400, 'validation_failed']);
    expect(answer.body).toMatchObject(refused(expect.stringContaining(message) as string));
    expect(await read('/v1/orders')).toEqual(before);
  });

  it('is another order for another number of days under the same key', async () => {
    const idempotencyKey = 'days-of-one-key';
    const post = (days: number) => api.post('/v1/orders', { package_id: PASS, days }, { idempotencyKey });
    const first = await post(2);
    expect((await post(2)).text).toBe(first.text);
    expect((await post(3)).status).toBe(422);
  });
});

describe('a top-up of a day pass', () => {
  it('adds the days that were bought, for their price', async () => {
    const order = await orderEnded(
      api,
      (await placeOrder(api, { package_id: PASS, days: 2 }))['id'] as string,
    );
    const esimId = order['esims'][0].esim_id as string;
    const offered = (await read(`/v1/esims/${esimId}/topup-packages`)) as { id: string }[];
    expect(offered.map(({ id }) => id)).toEqual(['pkg_test_topup_fail', TOPUP]);
    const { price } = await read(`/v1/catalog/${TOPUP}`);
    const body = { esim_id: esimId, package_id: TOPUP };
    expect((await api.post('/v1/topups', { ...body, days: 31 })).body).toMatchObject(
      refused('must be between 1 and 30 for this package'),
    );
    const answer = await api.post('/v1/topups', { ...body, days: 5 });
    expect(answer.status, answer.text).toBe(202);
    expect(answer.body.data).toMatchObject({
      days: 5,
      price: { amount: 5 * price.amount, currency: 'USD' },
      data_added_bytes: 10e9,
      validity_added_days: 5,
    });
  });

  it('is refused for an eSIM of a package with a total amount of data', async () => {
    const order = await orderEnded(api, (await placeOrder(api, { package_id: FIXED }))['id'] as string);
    const esim_id = order['esims'][0].esim_id as string;
    const answer = await api.post('/v1/topups', { esim_id, package_id: TOPUP, days: 5 });
    expect([answer.status, answer.body.code]).toEqual([409, 'topup_not_supported']);
  });
});
