import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiAnswer, type HttpClient, startTestService, type TestService } from '../harness/index.js';

let service: TestService;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
});
afterAll(() => service.stop());

const said = ({ body: { code, detail } }: ApiAnswer): readonly unknown[] => [code, detail];
const ORDER = { package_id: 'pkg_fr_1gb_7d' };

describe('a refusal says what to do', () => {
  it('about a field that is missing, once, and counts fields and not rules', async () => {
    const { body } = await api.post('/v1/orders', { packageId: 'pkg_fr_1gb_7d', quantity: 50 });
    expect(said({ body } as ApiAnswer)).toEqual(['validation_failed', '3 fields are invalid.']);
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

  it.each([
    ['/quantity', { ...ORDER, quantity: '2' }, 'is_int'],
    ['/max_unit_price/amount', { ...ORDER, max_unit_price: { amount: '500', currency: 'USD' } }, 'is_int'],
    ['/package_id', { package_id: 5 }, 'is_string'],
  ])('about a value of another type, that it is: %s', async (pointer, order, code) => {
    const { body } = await api.post('/v1/orders', order);
    expect((body.errors as object[]).map((error) => ({ ...error, message: '' }))).toEqual([
      { pointer, code, message: '' },
    ]);
  });

  it('about a field within a field that is missing', async () => {
    const { body } = await api.post('/v1/orders', { ...ORDER, max_unit_price: { currency: 'USD' } });
    expect(body.errors).toEqual([
      { pointer: '/max_unit_price/amount', code: 'required', message: 'is required' },
    ]);
  });

  it('about a package that is not there, or is bought elsewhere', async () => {
    expect(said(await api.post('/v1/orders', { package_id: 'pkg_none' }))).toEqual([
      'not_found',
      'There is no package with this id for this key: GET /v1/catalog lists them. Buy another package with a new Idempotency-Key.',
    ]);
    expect(said(await api.post('/v1/orders', { package_id: 'pkg_fr_topup_1gb_7d' }))).toEqual([
      'package_unavailable',
      'It is a top-up, which is bought for an eSIM: POST /v1/topups.',
    ]);
  });

  it('about a path that is not there', async () => {
    expect(said(await api.get('/orders'))).toEqual([
      'not_found',
      'There is nothing at this path: look at its spelling and its version, as in /v1/orders.',
    ]);
  });

  it('about a reference that is taken', async () => {
    expect((await api.post('/v1/orders', { ...ORDER, reference: 'taken-1' })).status).toBe(202);
    expect(said(await api.post('/v1/orders', { ...ORDER, reference: 'taken-1' }))).toEqual([
      'reference_taken',
      'Another order has this reference. GET /v1/orders?reference= shows it.',
    ]);
  });

  it('about a body that is no JSON, without a word of it', async () => {
    const answer = await api.call('POST', '/v1/orders', { body: '{"package_id": secret}' });
    expect(said(answer)).toEqual([
      'invalid_json',
      'The body is not acceptable JSON. Send one JSON object, in UTF-8, with names in double quotes and without comments or trailing commas.',
    ]);
    expect(answer.text).not.toContain('secret');
  });

  it('about a key that is none, the same for each reason (D12)', async () => {
    expect(said(await service.partnerApi(null).get('/v1/orders'))).toEqual([
      'unauthorized',
      'A valid API key is required. Send one header "Authorization: Bearer <key>", with a key that is neither revoked nor expired.',
    ]);
  });
});
