import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { invalidFields, expectProblem } from '../harness/expect-problem.js';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';

let service: TestService;
let sandbox: HttpClient;
let live: HttpClient;
let partnerId: string;

beforeAll(async () => {
  service = await startTestService();
  ({ id: partnerId, sandbox } = await service.createPartner());
  live = service.partnerApi(await service.createKey(partnerId, 'live'));
  const { pool } = service.database;
  // The sandbox catalog as a live one, with few prices and two currencies, so that many packages tie.
  await pool.query(
    `INSERT INTO packages SELECT p.* FROM packages s, LATERAL jsonb_populate_record(s, jsonb_build_object(
         'mode', 'live', 'created_at', s.created_at + (hashtext(s.id) % 5) * interval '1 second',
         'price_amount', 100 + abs(hashtext(s.id)) % 7, 'cost_micros', 900000 + abs(hashtext(s.id)) % 4 * 10000,
         'currency', CASE WHEN hashtext(s.id) % 3 = 0 THEN 'EUR' ELSE 'USD' END,
         'available', hashtext(s.id) % 10 <> 0)) AS p
     WHERE s.mode = 'sandbox'`,
  );
  await pool.query(`UPDATE catalog_versions SET version = version + 1 WHERE mode = 'live'`);
  const prices = [1, 2, 3].map((gb) => ({
    package_id: `pkg_fr_${gb}gb_7d`,
    price: { amount: 50 + gb, currency: 'GBP' },
  }));
  const set = await service.admin.call('PUT', `/internal/v1/partners/${partnerId}/price-list`, {
    body: { margin_bps: 1_000, prices },
  });
  expect(set.status, set.text).toBe(200);
});
afterAll(() => service.stop());

/** All pages of a list. */
async function listed(api: HttpClient, query: string, limit = 100): Promise<Json[]> {
  const items: Json[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const answer = await api.get(`/v1/catalog?limit=${limit}&${query}${cursor && `&cursor=${cursor}`}`);
    expect(answer.status, answer.text).toBe(200);
    items.push(...(answer.body.data as Json[]));
    cursor = answer.body.next_cursor as string | null;
  }
  return items;
}

const idsOf = (items: readonly Json[]): string[] => items.map(({ id }) => id as string);
const dataOf = (item: Json): number =>
  item['unlimited'] ? Infinity : ((item['data_bytes'] as number | null) ?? 0);
const compare = (a: string | number, b: string | number): number => (a < b ? -1 : Number(a > b));

const ORDERS: Readonly<Record<string, (a: Json, b: Json) => number>> = {
  price: (a, b) =>
    compare(a['price'].currency, b['price'].currency) || compare(a['price'].amount, b['price'].amount),
  '-price': (a, b) =>
    compare(a['price'].currency, b['price'].currency) || compare(b['price'].amount, a['price'].amount),
  data: (a, b) => compare(dataOf(a), dataOf(b)),
  '-data': (a, b) => compare(dataOf(b), dataOf(a)),
};

describe('the sorted catalog', () => {
  it.each(Object.keys(ORDERS))(
    'by %s has every package once, with ties in the order of the plain list',
    async (sort) => {
      for (const [api, filter] of [
        [live, ''],
        [live, 'country=JP&max_price_amount=104&'],
        [sandbox, ''],
      ] as const) {
        const expected = idsOf((await listed(api, filter)).sort(ORDERS[sort]));
        for (const limit of [7, 100])
          expect(idsOf(await listed(api, `${filter}sort=${sort}`, limit))).toEqual(expected);
      }
    },
    120_000,
  );

  it('has cursors of its own, and an ETag', async () => {
    const first = await live.get('/v1/catalog?sort=price&limit=5');
    const cursor = first.body.next_cursor as string;
    for (const sort of ['', '&sort=-price', '&sort=data'])
      expectProblem(await live.get(`/v1/catalog?limit=5&cursor=${cursor}${sort}`), 400, 'invalid_cursor');
    const again = { 'if-none-match': first.headers.get('etag')! };
    expect((await live.get('/v1/catalog?sort=price&limit=5', again)).status).toBe(304);
    expect((await live.get('/v1/catalog?sort=-price&limit=5', again)).status).toBe(200);
    expect(invalidFields(await live.get('/v1/catalog?sort=days'))).toEqual(['?sort']);
  });
});

describe('the list of destinations', () => {
  it('counts the base packages on sale that the catalog lists for each place', async () => {
    for (const api of [live, sandbox]) {
      const places = (await api.get('/v1/destinations')).body.data as Json[];
      const items = (await listed(api, 'kind=base')).filter(({ available }) => available);
      const filters: Readonly<Record<string, (place: Json, item: Json) => boolean>> = {
        country: ({ code }, { coverage }) => (coverage as string[]).includes(code as string),
        region: ({ code }, { region }) => region === code,
        global: (_, { type }) => type === 'global',
      };
      const codes = new Set(items.flatMap(({ coverage, region }) => [...coverage, region].filter(Boolean)));
      expect(new Set(places.map(({ code }) => code))).toEqual(codes.add('global'));
      for (const place of places) {
        const here = items.filter((item) => filters[place['kind'] as string]!(place, item));
        const { amount, currency } = place['price_from'];
        const inCurrency = (code: string): number[] =>
          here.flatMap(({ price }) => (price.currency === code ? [price.amount as number] : []));
        expect(place, place['code'] as string).toMatchObject({
          packages: here.length,
          has_unlimited: here.some(({ plan }) => plan.kind === 'unlimited'),
          has_daily: here.some(({ plan }) => plan.kind === 'daily'),
        });
        expect(amount).toBe(Math.min(...inCurrency(currency as string)));
        for (const other of ['EUR', 'GBP', 'USD'])
          expect(inCurrency(currency as string).length).toBeGreaterThanOrEqual(inCurrency(other).length);
      }
    }
  });

  it('names countries and regions in English, with an ETag that a new price list changes', async () => {
    const first = await live.get('/v1/destinations');
    const names = Object.fromEntries((first.body.data as Json[]).map(({ code, name }) => [code, name]));
    expect(names).toMatchObject({
      JP: 'Japan',
      GB: 'United Kingdom',
      'latin-america': 'Latin America',
      global: 'Global',
    });
    const again = { 'if-none-match': first.headers.get('etag')! };
    expect((await live.get('/v1/destinations', again)).status).toBe(304);
    expect((await sandbox.get('/v1/destinations', again)).status).toBe(200);
    expect(first.body).toMatchObject({ has_more: false, next_cursor: null });
  });
});

describe('a shelf', () => {
  it('ranks the packages that remain by price, and names a better one of each other', async () => {
    const { data, dropped, has_more } = (await sandbox.get('/v1/catalog?country=JP&type=country&shelf=true'))
      .body as {
      data: Json[];
      dropped: { package_id: string; dominated_by: string }[];
      has_more: boolean;
    };
    const plain = (await listed(sandbox, 'country=JP&type=country&kind=base')).filter(
      ({ available }) => available,
    );
    expect(has_more).toBe(false);
    expect([...idsOf(data), ...dropped.map((each) => each.package_id)].toSorted()).toEqual(
      idsOf(plain).toSorted(),
    );
    expect(data.map(({ shelf }) => shelf.rank)).toEqual(data.map((_, nth) => nth + 1));
    expect(data.map(({ price }) => price.amount)).toEqual(
      data.map(({ price }) => price.amount as number).toSorted((a, b) => a - b),
    );
    const byId = new Map(plain.map((item) => [item['id'], item]));
    for (const { package_id, dominated_by } of dropped) {
      const [worse, better] = [byId.get(package_id)!, byId.get(dominated_by)!];
      expect(idsOf(data)).toContain(dominated_by);
      expect(better['price'].amount).toBeLessThanOrEqual(worse['price'].amount);
      expect(dataOf(better)).toBeGreaterThanOrEqual(dataOf(worse));
      expect(better['exit_countries']).toEqual(worse['exit_countries']);
    }
    for (const item of data) {
      const { shelf, ...rest } = item;
      expect([shelf, JSON.stringify(rest)]).toEqual([
        expect.anything(),
        JSON.stringify(byId.get(item['id'])),
      ]);
    }
  });

  it('follows the filters and the sort, lists top-ups on request, and has an ETag', async () => {
    const first = await sandbox.get('/v1/catalog?country=JP&shelf=true&sort=-data&max_validity_days=30');
    const items = first.body.data as Json[];
    expect(items.map(dataOf)).toEqual(items.map(dataOf).toSorted((a, b) => compare(b, a)));
    expect(items.every((item) => item['kind'] === 'base' && item['validity_days'] <= 30)).toBe(true);
    const topups = (await sandbox.get('/v1/catalog?region=europe&kind=topup&shelf=true')).body.data as Json[];
    expect(new Set(topups.map(({ kind }) => kind))).toEqual(new Set(['topup']));
    const again = { 'if-none-match': first.headers.get('etag')! };
    const path = '/v1/catalog?country=JP&shelf=true&sort=-data&max_validity_days=30';
    expect((await sandbox.get(path, again)).status).toBe(304);
    expect((await sandbox.get('/v1/catalog?country=JP&shelf=false')).body.dropped).toBeUndefined();
  });

  it.each([
    ['?shelf', 'shelf=true'],
    ['?shelf', 'shelf=yes&country=JP'],
    ['?limit', 'shelf=true&country=JP&limit=5'],
    ['?cursor', 'shelf=true&country=JP&cursor=abc'],
    ['?updated_since', 'shelf=true&country=JP&updated_since=2026-11-01T00:00:00Z'],
  ])('refuses %s of ?%s', async (pointer, query) => {
    expect(invalidFields(await sandbox.get(`/v1/catalog?${query}`))).toEqual([pointer]);
  });
});
