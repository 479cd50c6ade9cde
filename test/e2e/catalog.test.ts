import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  leastOf,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';

let service: TestService;
let partnerId: string;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  ({ id: partnerId, sandbox: api } = await service.createPartner());
});

afterAll(() => service.stop());

async function list(query = ''): Promise<ApiAnswer> {
  const answer = await api.get(`/v1/catalog${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer;
}

/** All packages of a query, page by page. */
async function walk(query: Record<string, string | number> = {}): Promise<Json[]> {
  const packages: Json[] = [];
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  for (;;) {
    const { body } = await list(`?${parameters.toString()}`);
    packages.push(...(body.data as Json[]));
    expect(body.has_more).toBe(body.next_cursor !== null);
    if (!body.has_more) return packages;
    parameters.set('cursor', body.next_cursor as string);
  }
}

const ids = (packages: readonly Json[]): string[] => packages.map((item) => item['id'] as string);

describe('GET /v1/catalog', () => {
  it('lists at least 200 packages in at least 100 countries, in every region and worldwide, with top-ups', async () => {
    const packages = await walk({ limit: 100 });
    expect(packages.length).toBeGreaterThanOrEqual(200);
    expect(new Set(packages.flatMap((item) => item['coverage'] as string[])).size).toBeGreaterThanOrEqual(
      100,
    );
    expect([...new Set(packages.map((item) => item['region']))].sort()).toEqual([...REGIONS, null].sort());
    expect(new Set(packages.map((item) => item['type']))).toEqual(new Set(['country', 'regional', 'global']));
    expect(new Set(packages.map((item) => item['kind']))).toEqual(new Set(['base', 'topup']));
    expect(ids(packages)).toEqual(expect.arrayContaining(MAGIC));
  });

  it('shows every package with exactly the documented fields', async () => {
    for (const item of await walk({ limit: 100 })) {
      expect(Object.keys(item).sort()).toEqual(PACKAGE_FIELDS);
      expect(item['data_bytes'] === null || item['data_bytes'] > 0, item['id']).toBe(true);
      if (item['unlimited']) expect(item['data_bytes']).toBeNull();
      expect(item['price']).toEqual({
        amount: expect.any(Number),
        currency: expect.stringMatching(/^[A-Z]{3}$/),
      });
      expect(item['updated_at']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
  });

  it.each([
    [1, { country: 'FR' }],
    [7, {}],
    [25, {}],
    [100, {}],
  ])('pages through all packages in pages of %i %j without duplicates or gaps', async (limit, filters) => {
    const { rows } = await service.database.pool.query<{ id: string }>(
      `SELECT id FROM packages WHERE mode = 'sandbox' AND ($1::text IS NULL OR $1 = ANY (coverage)) ORDER BY id`,
      ['country' in filters ? filters.country : null],
    );
    const walked = ids(await walk({ ...filters, limit }));
    expect([...walked].sort()).toEqual(rows.map((row) => row.id).sort());
  });

  it('returns pages of 25 by default', async () => {
    expect((await list()).body.data).toHaveLength(25);
  });

  it.each<[Record<string, string | number>, (item: Json) => boolean]>([
    [{ country: 'FR' }, (item) => item['coverage'].includes('FR')],
    [{ region: 'europe' }, (item) => item['region'] === 'europe'],
    [{ type: 'global' }, (item) => item['type'] === 'global'],
    [{ kind: 'topup' }, (item) => item['kind'] === 'topup'],
    [{ min_data_bytes: 10_000_000_000 }, (item) => item['unlimited'] || item['data_bytes'] >= 10_000_000_000],
    [{ max_price_amount: 200 }, (item) => item['price'].amount <= 200],
    [{ plan: 'unlimited' }, (item) => item['unlimited']],
    [{ exit_country: 'HK' }, (item) => item['exit_countries']?.includes('HK')],
    [{ not_exit_country: 'HK' }, (item) => item['exit_countries'] && !item['exit_countries'].includes('HK')],
    [
      { max_validity_days: 7, topup_supported: 'true' },
      (item) => item['validity_days'] <= 7 && item['topup_supported'],
    ],
    [{ topup_supported: 'false' }, (item) => !item['topup_supported']],
    [{ updated_since: '2001-01-01T00:00:00Z' }, () => true],
    [{ updated_since: '2101-01-01T00:00:00Z' }, () => false],
    [
      {
        country: 'FR',
        kind: 'base',
        type: 'country',
        min_data_bytes: 2_000_000_000,
        max_price_amount: 1_500,
      },
      (item) =>
        item['coverage'].includes('FR') &&
        item['kind'] === 'base' &&
        item['type'] === 'country' &&
        (item['unlimited'] || item['data_bytes'] >= 2_000_000_000) &&
        item['price'].amount <= 1_500,
    ],
  ])('filters by %j: returns every match and nothing else', async (query, fits) => {
    const expected = ids((await walk({ limit: 100 })).filter(fits));
    expect(ids(await walk({ ...query, limit: 20 }))).toEqual(expected);
  });

  it('binds a cursor to its filters', async () => {
    const { next_cursor } = (await list('?limit=5&country=FR')).body;
    const cursor = next_cursor as string;
    expect((await api.get(`/v1/catalog?limit=7&country=FR&cursor=${cursor}`)).status).toBe(200);
    const others = [
      `?cursor=${cursor}`,
      `?country=DE&cursor=${cursor}`,
      `?country=FR&kind=base&cursor=${cursor}`,
      `?country=FR&cursor=${cursor.slice(0, -1)}`,
      `?country=FR&cursor=${cursor}A`,
      `?country=FR&cursor=${cursor.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))}`,
      `?country=FR&cursor=nonsense`,
    ];
    for (const query of others) expectProblem(await api.get(`/v1/catalog${query}`), 400, 'invalid_cursor');
  });

  it.each([
    ['?limit=0', '?limit'],
    ['?limit=101', '?limit'],
    ['?limit=-1', '?limit'],
    ['?limit=abc', '?limit'],
    ['?limit=', '?limit'],
    ['?limit=1.5', '?limit'],
    ['?limit=%2B5', '?limit'],
    ['?limit=5&limit=5', '?limit'],
    ['?country=FR&country=DE', '?country'],
    ['?country=fr', '?country'],
    ['?country=FRA', '?country'],
    ['?region=atlantis', '?region'],
    ['?type=planet', '?type'],
    ['?kind=both', '?kind'],
    ['?plan=weekly', '?plan'],
    ['?exit_country=hk', '?exit_country'],
    ['?not_exit_country=', '?not_exit_country'],
    ['?max_validity_days=0', '?max_validity_days'],
    ['?topup_supported=yes', '?topup_supported'],
    ['?min_data_bytes=-1', '?min_data_bytes'],
    ['?max_price_amount=1e3', '?max_price_amount'],
    ['?updated_since=yesterday', '?updated_since'],
    ['?updated_since=2026-02-30T00:00:00Z', '?updated_since'],
    ['?updated_since=2026-02-03T00:00:00', '?updated_since'],
    ['?color=red', '?color'],
    ['?limit[]=5', '?limit[]'],
  ])('refuses %s', async (query, pointer) => {
    expect(new Set(invalidFields(await api.get(`/v1/catalog${query}`)))).toEqual(new Set([pointer]));
  });
});

describe('GET /v1/catalog/{package_id}', () => {
  it('shows the package of the list', async () => {
    const [first] = (await list('?limit=1')).body.data as Json[];
    expect((await api.get(`/v1/catalog/${first!['id']}`)).body.data).toEqual(first);
  });

  it('still shows a withdrawn package, as unavailable', async () => {
    expect((await api.get('/v1/catalog/pkg_gr_2gb_15d')).body.data).toMatchObject({ available: false });
  });

  it.each(['pkg_no_such', 'nonsense', 'ord_00000000000000000000000000', 'PKG_FR_1GB_7D', 'pkg_%C3%A9'])(
    'returns 404 for %s',
    async (id) => expectProblem(await api.get(`/v1/catalog/${id}`), 404, 'not_found'),
  );

  it('accepts no query parameters', async () => {
    expect((await api.get('/v1/catalog/pkg_fr_1gb_7d?country=FR')).body.code).toBe('validation_failed');
  });
});

describe('ETag', () => {
  it.each(['/v1/catalog?country=FR', '/v1/catalog/pkg_fr_1gb_7d'])(
    'gives %s a 304 with id and rate headers but no body, for a match in any form',
    async (path) => {
      const etag = (await api.get(path)).headers.get('etag')!;
      const opaque = etag.replace(/^W\//, '');
      for (const value of [etag, opaque, `W/${opaque}`, `"other", ${etag}`, `"a",W/"b" , ${opaque}`, '*']) {
        const answer = await api.get(path, { 'if-none-match': value });
        expect([answer.status, answer.text], value).toEqual([304, '']);
        expect(answer.headers.get('etag')).toBe(etag);
        // A cache would store them in place of those of the 200.
        for (const name of ['content-type', 'content-length'])
          expect(answer.headers.has(name), name).toBe(false);
        expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
        for (const name of ['limit', 'remaining', 'reset'])
          expect(answer.headers.has(`x-ratelimit-${name}`)).toBe(true);
      }
      for (const value of ['"other"', 'W/"other"', opaque.slice(1, -1), '']) {
        expect((await api.get(path, { 'if-none-match': value })).status, value).toBe(200);
      }
    },
  );

  it('differs between queries and pages', async () => {
    const cursor = (await list('?country=FR&limit=3')).body.next_cursor as string;
    const queries = [
      '',
      '?country=FR',
      '?country=DE',
      '?limit=3',
      '?country=FR&limit=3',
      `?country=FR&limit=3&cursor=${cursor}`,
    ];
    const etags = await Promise.all(queries.map(async (query) => (await list(query)).headers.get('etag')));
    expect(new Set(etags).size).toBe(queries.length);
  });

  it('changes when a package changes, and the list shows the change within two seconds', async () => {
    const promisedMs = 2_000;
    const quickestMs = await leastOf(promisedMs, async () => {
      const before = (await list('?country=MC&kind=base')).headers.get('etag')!;
      await service.database.pool.query(
        `WITH c AS (UPDATE packages SET price_amount = price_amount + 5, updated_at = now()
                    WHERE mode = 'sandbox' AND id = 'pkg_mc_1gb_7d')
         UPDATE catalog_versions SET version = version + 1 WHERE mode = 'sandbox'`,
      );
      const changedAt = performance.now();
      await eventually('the new price', async () => {
        const answer = await api.get('/v1/catalog?country=MC&kind=base', { 'if-none-match': before });
        return answer.status === 200;
      });
      return performance.now() - changedAt;
    });
    expect(quickestMs).toBeLessThan(promisedMs);
  });

  it('has Cache-Control: private, so that keys do not share a cached response', async () => {
    const answer = await list();
    expect(answer.headers.get('cache-control')).toContain('private');
    expect(answer.headers.get('vary')).toMatch(/authorization/i);
  });

  it('is not visible to a live key', async () => {
    const live = service.partnerApi(await service.createKey(partnerId, 'live'));
    expect((await live.get('/v1/catalog')).body).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });
});

const REGIONS = [
  'africa',
  'asia',
  'balkans',
  'caribbean',
  'europe',
  'latin-america',
  'middle-east',
  'north-america',
  'oceania',
];

const MAGIC = [
  'pkg_test_out_of_stock',
  'pkg_test_insufficient_balance',
  'pkg_test_timeout',
  'pkg_test_slow',
  'pkg_test_partial',
  'pkg_test_topup_fail',
];

/** All documented fields of a package. */
const PACKAGE_FIELDS = [
  ...[
    'activation_policy',
    'available',
    'coverage',
    'data_bytes',
    'data_label',
    'data_unit',
    'exit_countries',
    'fair_use',
    'hotspot',
    'id',
    'install_within_days',
    'kind',
    'max_generation',
    'min_retail_price',
    'networks',
    'notes',
    'plan',
    'price',
    'price_per_day',
    'region',
    'region_name',
    'requirements',
  ],
  ...[
    'retail_price',
    'sms_count',
    'speed_policy',
    'title',
    'topup',
    'topup_supported',
    'type',
    'unlimited',
    'updated_at',
    'validity_days',
    'variant',
  ],
  'voice_minutes',
];
