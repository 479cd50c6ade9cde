import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type ApiAnswer,
  type HttpClient,
  leastOf,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import type { Json } from '../harness/order-steps.js';

let service: TestService;
let partnerId: string;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  const partner = await service.createPartner();
  partnerId = partner.id;
  api = partner.sandbox;
});

afterAll(() => service.stop());

const list = (query = ''): Promise<ApiAnswer> => api.get(`/v1/catalog${query}`);

describe('GET /v1/catalog/{package_id}', () => {
  it('shows the package of the list', async () => {
    const [first] = (await list('?limit=1')).body.data as Json[];
    expect((await api.get(`/v1/catalog/${first!['id']}`)).body.data).toEqual(first);
  });

  it('keeps showing a withdrawn package, as not available', async () => {
    expect((await api.get('/v1/catalog/pkg_gr_2gb_15d')).body.data).toMatchObject({ available: false });
  });

  it.each(['pkg_no_such', 'nonsense', 'ord_00000000000000000000000000', 'PKG_FR_1GB_7D', 'pkg_%C3%A9'])(
    'answers 404 for %s',
    async (id) => expectProblem(await api.get(`/v1/catalog/${id}`), 404, 'not_found'),
  );

  it('takes no query parameters', async () => {
    expect((await api.get('/v1/catalog/pkg_fr_1gb_7d?country=FR')).body.code).toBe('validation_failed');
  });
});

describe('ETag', () => {
  it.each(['/v1/catalog?country=FR', '/v1/catalog/pkg_fr_1gb_7d'])(
    'of %s gives 304 without a body, but with id and rate headers, for a match in any form',
    async (path) => {
      const etag = (await api.get(path)).headers.get('etag')!;
      const opaque = etag.replace(/^W\//, '');
      for (const value of [etag, opaque, `W/${opaque}`, `"other", ${etag}`, `"a",W/"b" , ${opaque}`, '*']) {
        const answer = await api.get(path, { 'if-none-match': value });
        expect([answer.status, answer.text], value).toEqual([304, '']);
        expect(answer.headers.get('etag')).toBe(etag);
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

  it('moves when a package changes, and the list shows the change within two seconds', async () => {
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

  it('is no reason to keep an answer for another key', async () => {
    const answer = await list();
    expect(answer.headers.get('cache-control')).toContain('private');
    expect(answer.headers.get('vary')).toMatch(/authorization/i);
  });

  it('lets a live key see none of this', async () => {
    const live = service.partnerApi(await service.createKey(partnerId, 'live'));
    expect((await live.get('/v1/catalog')).body).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });
});
