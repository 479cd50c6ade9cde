import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  createTestDatabase,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { invalidFields } from '../harness/expect-problem.js';

const PRICE = { amount: 450, currency: 'USD' };
const LIST = { margin_bps: 1_500, prices: [{ package_id: 'pkg_a_FR_1_7', price: PRICE }] };

let database: TestDatabase;
let office: TestService;
let partnerId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  office = await startTestService({ role: 'admin', database });
  partnerId = (await office.createPartner()).id;
});

afterAll(async () => {
  await office.stop();
  await database.drop();
});

function put(body: unknown): Promise<ApiAnswer> {
  return office.admin.call('PUT', `/internal/v1/partners/${partnerId}/price-list`, { body });
}

/** The stored price lists of all partners and their audit entries. */
async function stored(): Promise<unknown[]> {
  const lists = await database.pool.query('SELECT * FROM price_lists ORDER BY partner_id');
  const audit = await office.admin.get('/internal/v1/audit-log?action=price_list.replaced');
  return [lists.rows, audit.body.data];
}

const priceOf = (price: unknown): object => ({ prices: [{ package_id: 'pkg_x', price }] });

describe('a price list', () => {
  it('is stored as it was given', async () => {
    const answer = await put(LIST);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ partner_id: partnerId, ...LIST });
  });

  it('accepts at most 240 prices, which fit in a body', async () => {
    const prices = Array.from({ length: 241 }, (_, i) => ({
      package_id: `pkg_a_${i}`.padEnd(64, 'x'),
      price: { amount: 999_999_999, currency: 'USD' },
    }));
    const refused = await put({ margin_bps: 1_500, prices });
    expect(invalidFields(refused)).toEqual(['/prices']);
    const answer = await put({ margin_bps: 1_500, prices: prices.slice(0, 240) });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data.prices).toHaveLength(240);
  });

  it.each<[string, unknown]>([
    ['/prices', { prices: 'all' }],
    ['/prices', { prices: { length: 1 } }],
    ['/prices', { prices: [null] }],
    ['/prices', { prices: [1] }],
    ['/prices', { prices: [[]] }],
    ['/prices', { prices: [[{ package_id: 'pkg_x', price: PRICE }]] }],
    ['/prices', { prices: [LIST.prices[0], LIST.prices[0]] }],
    ['/prices/0/price', { prices: [{ package_id: 'pkg_x' }] }],
    ['/prices/0/price', priceOf(null)],
    ['/prices/0/price', priceOf(450)],
    ['/prices/0/price', priceOf('4.50')],
    ['/prices/0/price', priceOf([])],
    ['/prices/0/price', priceOf([PRICE])],
    ['/prices/0/price/amount', priceOf({ ...PRICE, amount: '450' })],
    ['/prices/0/price/amount', priceOf({ ...PRICE, amount: 4.5 })],
    ['/prices/0/price/amount', priceOf({ ...PRICE, amount: -1 })],
    ['/prices/0/price/amount', priceOf({ ...PRICE, amount: 1e30 })],
    ['/prices/0/price/currency', priceOf({ ...PRICE, currency: 'usd' })],
    ['/prices/0/package_id', { prices: [{ package_id: 'France', price: PRICE }] }],
    ['/margin_bps', { margin_bps: '1' }],
    ['/margin_bps', { margin_bps: -1 }],
  ])('refuses a malformed value at %s and stores nothing: %j', async (pointer, body) => {
    const before = await stored();
    const pointers = invalidFields(await put(body));
    expect(pointers.length).toBeGreaterThan(0);
    expect(pointers.filter((each) => !each.startsWith(pointer))).toEqual([]);
    expect(await stored()).toEqual(before);
  });
});
