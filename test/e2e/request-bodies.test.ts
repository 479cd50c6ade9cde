import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, placeOrder } from '../harness/order-steps.js';
import { rawRequest } from '../harness/raw-http.js';

let service: TestService;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
});

afterAll(() => service.stop());

const PACKAGE = { package_id: 'pkg_fr_1gb_7d' };
const pairs = (n: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 'v']));

describe('fields of POST /v1/orders', () => {
  it('accepts null for an absent optional field', async () => {
    const order = await placeOrder(api, {
      ...PACKAGE,
      quantity: null,
      reference: null,
      max_unit_price: null,
      metadata: null,
    });
    expect(order).toMatchObject({ quantity: 1, reference: null, metadata: {} });
  });

  it.each(['2', 2.5, 0, 21, -1, true, [2], {}, 1e21])('refuses quantity %j', async (quantity) => {
    expect(new Set(invalidFields(await api.post('/v1/orders', { ...PACKAGE, quantity })))).toEqual(
      new Set(['/quantity']),
    );
  });

  it.each([1, 20])('accepts quantity %i', async (quantity) => {
    expect(await placeOrder(api, { ...PACKAGE, quantity })).toMatchObject({ quantity });
  });

  it.each([
    ['21 pairs', pairs(21)],
    ['a key of 41 characters', { ['k'.repeat(41)]: 'v' }],
    ['an empty key', { '': 'v' }],
    ['a value of 501 characters', { k: 'v'.repeat(501) }],
    ['a number', { k: 1 }],
    ['null as a value', { k: null }],
    ['an object as a value', { k: {} }],
    ['a list', ['v']],
    ['text', 'v'],
  ])('refuses metadata with %s', async (_name, metadata) => {
    expect(invalidFields(await api.post('/v1/orders', { ...PACKAGE, metadata }))).toEqual(['/metadata']);
  });

  it('accepts metadata up to its limits and returns it unchanged', async () => {
    const metadata = { ...pairs(17), ['k'.repeat(40)]: 'v'.repeat(500), empty: '', 'Ünï 🛰': 'çödé 🛰 \n "\\' };
    const order = await placeOrder(api, { ...PACKAGE, metadata });
    expect(order['metadata']).toEqual(metadata);
    expect((await api.get(`/v1/orders/${order['id']}`)).body.data.metadata).toEqual(metadata);
  });

  it.each(['', 'x'.repeat(65), 'réf', 'tab\t', 'line\n', '🛰', 7, {}])(
    'refuses reference %j',
    async (reference) => {
      expect(new Set(invalidFields(await api.post('/v1/orders', { ...PACKAGE, reference })))).toEqual(
        new Set(['/reference']),
      );
    },
  );

  it.each(['x', 'x'.repeat(64), ` ~!"#$%&'()*+,-./:;<=>?@[\\]^_{|}`])(
    'accepts reference %j and finds it',
    async (reference) => {
      const { id } = await placeOrder(api, { ...PACKAGE, reference });
      const found = (await api.get(`/v1/orders?reference=${encodeURIComponent(reference)}`)).body.data;
      expect(found.map((order: { id: string }) => order.id)).toEqual([id]);
    },
  );

  it.each([
    [{}, ['/package_id']],
    [{ package_id: 7 }, ['/package_id']],
    [{ package_id: null }, ['/package_id']],
    [{ package_id: '' }, ['/package_id']],
    [{ package_id: 'p'.repeat(65) }, ['/package_id']],
    [{ ...PACKAGE, color: 'red' }, ['/color']],
    [{ ...PACKAGE, 'a/b~c': 1 }, ['/a~1b~0c']],
    [{ ...PACKAGE, Quantity: 2 }, ['/Quantity']],
    [{ ...PACKAGE, max_unit_price: 500 }, ['/max_unit_price']],
    [{ ...PACKAGE, max_unit_price: { amount: 500 } }, ['/max_unit_price/currency']],
    [{ ...PACKAGE, max_unit_price: { amount: '500', currency: 'USD' } }, ['/max_unit_price/amount']],
    [
      { ...PACKAGE, max_unit_price: { amount: -1, currency: 'usd' } },
      ['/max_unit_price/amount', '/max_unit_price/currency'],
    ],
    [{ ...PACKAGE, max_unit_price: { amount: 1, currency: 'USD', tax: 1 } }, ['/max_unit_price/tax']],
  ])('refuses %j at %j', async (body, pointers) => {
    const found = new Set(invalidFields(await api.post('/v1/orders', body)));
    expect([...found].sort()).toEqual(pointers);
  });

  it('reports a missing field once, and counts fields instead of rules', async () => {
    const { body } = await api.post('/v1/orders', { packageId: 'pkg_fr_1gb_7d', quantity: 50 });
    expect(body.detail).toBe('3 fields are invalid. Correct the fields listed in `errors`.');
    const errors = body.errors as { pointer: string; code: string; message: string }[];
    expect(errors.map(({ pointer }) => pointer).toSorted()).toEqual([
      '/packageId',
      '/package_id',
      '/quantity',
    ]);
    expect(errors.find(({ pointer }) => pointer === '/package_id')).toEqual({
      pointer: '/package_id',
      code: 'required',
      message: 'is required',
    });
  });

  it('reports every invalid field at once', async () => {
    const body = { package_id: 1, quantity: 0, reference: 'é', metadata: 1, color: 1 };
    const found = new Set(invalidFields(await api.post('/v1/orders', body)));
    expect(found).toEqual(new Set(['/package_id', '/quantity', '/reference', '/metadata', '/color']));
  });

  it.each(['[]', '"text"', '7', 'null', 'true'])('refuses the body %s', async (body) => {
    expect(invalidFields(await api.post('/v1/orders', body))).toEqual(['']);
  });

  it('refuses a missing body', async () => {
    expectProblem(await api.post('/v1/orders'), 400, 'validation_failed');
  });
});

describe('JSON (D9)', () => {
  it.each([
    ['half an object', '{"package_id":'],
    ['a trailing comma', '{"package_id":"pkg_fr_1gb_7d",}'],
    ['single quotes', `{'package_id':'pkg_fr_1gb_7d'}`],
    ['two values', '{}{}'],
    ['a prototype', '{"__proto__":{"a":1},"package_id":"pkg_fr_1gb_7d"}'],
    ['an escaped prototype', '{"\\u005f_proto__":{"a":1},"package_id":"pkg_fr_1gb_7d"}'],
    ["a constructor's prototype", '{"constructor":{"prototype":{"a":1}},"package_id":"pkg_fr_1gb_7d"}'],
    ['NaN', '{"package_id":"pkg_fr_1gb_7d","quantity":NaN}'],
  ])('refuses %s as invalid_json', async (_name, body) => {
    expectProblem(await api.post('/v1/orders', body), 400, 'invalid_json');
  });

  it.each([
    ['33 levels', `{"package_id":"pkg_fr_1gb_7d","metadata":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['1,001 names', JSON.stringify({ ...PACKAGE, metadata: pairs(1_001) })],
    ['NUL', '{"package_id":"pkg_fr_1gb_7d","metadata":{"k":"\\u0000"}}'],
    ['a lone surrogate', '{"package_id":"pkg_fr_1gb_7d","metadata":{"k":"\\ud800"}}'],
    ['a lone surrogate in a name', '{"package_id":"pkg_fr_1gb_7d","metadata":{"\\udc00":"v"}}'],
    ['an infinite number', '{"package_id":"pkg_fr_1gb_7d","quantity":1e999}'],
  ])('refuses %s as validation_failed', async (_name, body) => {
    expectProblem(await api.post('/v1/orders', body), 400, 'validation_failed');
  });

  it('refuses bytes that are not UTF-8', async () => {
    const body = Buffer.from(`{"package_id":"pkg_fr_1gb_7d","reference":"\xff"}`, 'latin1');
    const token = await sandboxKey();
    const answer = await rawRequest(api.baseUrl, {
      method: 'POST',
      path: '/v1/orders',
      headers: [
        ['Authorization', `Bearer ${token}`],
        ['Idempotency-Key', 'not-utf-8-bytes'],
        ['Content-Type', 'application/json'],
        ['Content-Length', String(body.length)],
      ],
      body,
    });
    expectProblem(answer, 400, 'validation_failed');
  });

  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8'])(
    'is accepted as %s',
    async (type) => {
      expect((await api.post('/v1/orders', PACKAGE, { headers: { 'content-type': type } })).status).toBe(202);
    },
  );

  it.each([
    'text/json',
    'application/merge-patch+json',
    'application/json; charset=latin1',
    'multipart/form-data; boundary=x',
  ])('is not accepted as %s', async (type) => {
    const answer = await api.post('/v1/orders', PACKAGE, { headers: { 'content-type': type } });
    expectProblem(answer, 415, 'unsupported_media_type');
  });

  async function sandboxKey(): Promise<string> {
    return (await service.createPartner()).sandboxKey;
  }
});

describe('an operation without fields', () => {
  let activate: string;
  beforeAll(async () => {
    activate = `/v1/sandbox/esims/${await issueEsim(api, PACKAGE.package_id)}/activate`;
  });

  it.each([
    ['no body', undefined, {}],
    ['no body, although a type is named', undefined, { 'content-type': 'application/json' }],
    ['no body with another type', undefined, { 'content-type': 'text/plain' }],
    ['an empty body', '', { 'content-type': 'application/json' }],
    ['an empty object', {}, {}],
  ])('accepts %s', async (_name, body, headers) => {
    expect((await api.post(activate, body, { headers })).status).toBe(200);
  });

  it.each(['[]', 'null', '""', '0', 'false', '{"force":true}', '[{}]'])('refuses %s', async (body) => {
    expectProblem(await api.post(activate, body), 400, 'validation_failed');
  });

  it('refuses a query', async () => {
    expectProblem(await api.post(`${activate}?force=true`), 400, 'validation_failed');
  });
});
