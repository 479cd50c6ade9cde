import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/common/errors/index.js';
import { type ApiAnswer, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { rawRequest, type RawRequest } from '../harness/raw-http.js';

let service: TestService;
let key: string;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  const partner = await service.createPartner();
  key = partner.sandboxKey;
  api = partner.sandbox;
});

afterAll(() => service.stop());

const NO_ORDER = '/v1/orders/ord_00000000000000000000000000';
const TOO_LARGE = String(65_537);
const JSON_TYPE: [string, string] = ['Content-Type', 'application/json'];
const KEY: [string, string] = ['Idempotency-Key', 'a-valid-key-1'];

interface Faulty extends Partial<RawRequest> {
  readonly path: string;
}

const send = (request: Faulty, authorization = `Bearer ${key}`): Promise<ApiAnswer> =>
  rawRequest(api.baseUrl, {
    ...request,
    headers: [['Authorization', authorization], ...(request.headers ?? [])],
  });

/** Each has the fault of its line and every fault of the lines below that can go with it. */
const IN_ORDER: [string, Faulty, number, ErrorCode][] = [
  [
    'an unknown path',
    { method: 'POST', path: '/v1/nope', headers: [['Content-Length', TOO_LARGE]] },
    404,
    'not_found',
  ],
  ['a known path below an unknown version', { path: '/v2/orders?x=1' }, 404, 'not_found'],
  [
    'an empty id',
    { method: 'POST', path: '/v1/orders//cancel', headers: [['Content-Length', '0']] },
    404,
    'not_found',
  ],
  [
    'an unknown method',
    {
      method: 'DELETE',
      path: '/v1/orders',
      headers: [
        ['Content-Type', 'text/plain'],
        ['Content-Length', TOO_LARGE],
      ],
    },
    405,
    'method_not_allowed',
  ],
  [
    'another media type',
    {
      method: 'POST',
      path: '/v1/orders',
      headers: [
        ['Content-Type', 'text/plain'],
        ['Content-Length', TOO_LARGE],
      ],
    },
    415,
    'unsupported_media_type',
  ],
  [
    'no media type',
    { method: 'POST', path: '/v1/orders', headers: [['Content-Length', TOO_LARGE]] },
    415,
    'unsupported_media_type',
  ],
  [
    'a compressed body',
    {
      method: 'POST',
      path: '/v1/orders',
      headers: [JSON_TYPE, ['Content-Encoding', 'gzip'], ['Content-Length', TOO_LARGE]],
    },
    415,
    'unsupported_media_type',
  ],
  [
    'a body declared too large',
    { method: 'POST', path: '/v1/orders', headers: [JSON_TYPE, ['Content-Length', TOO_LARGE]] },
    413,
    'payload_too_large',
  ],
  [
    'no Idempotency-Key',
    { method: 'POST', path: '/v1/orders', headers: [JSON_TYPE, ['Content-Length', '1']], body: '{' },
    400,
    'idempotency_key_required',
  ],
  [
    'a body that grows too large',
    {
      method: 'POST',
      path: '/v1/orders',
      headers: [JSON_TYPE, KEY, ['Transfer-Encoding', 'chunked']],
      body: `${(70_000).toString(16)}\r\n${'{'.repeat(70_000)}\r\n0\r\n\r\n`,
    },
    413,
    'payload_too_large',
  ],
  [
    'a body that is no JSON',
    { method: 'POST', path: '/v1/orders', headers: [JSON_TYPE, KEY, ['Content-Length', '1']], body: '{' },
    400,
    'invalid_json',
  ],
  [
    'an invalid field',
    { method: 'POST', path: '/v1/orders', headers: [JSON_TYPE, KEY, ['Content-Length', '2']], body: '{}' },
    400,
    'validation_failed',
  ],
];

describe('order of checks (D7)', () => {
  it.each(IN_ORDER)('%s, with a valid key', async (_name, request, status, code) => {
    const answer = await send(request);
    expectProblem(answer, status, code);
    expect(answer.headers.get('x-ratelimit-limit')).not.toBeNull();
    if (code === 'method_not_allowed') expect(answer.headers.get('allow')).toBe('GET, POST');
  });

  it.each(IN_ORDER)('%s, from nobody: 401', async (_name, request) => {
    const answer = await send(request, 'Bearer svc_sk_test_nobody');
    expectProblem(answer, 401, 'unauthorized');
    expect(answer.headers.get('allow')).toBeNull();
  });

  it.each(['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'])(
    'answers %s with 405 where the path exists, and with 401 to nobody',
    async (method) => {
      for (const path of ['/v1/orders', '/v1/me', NO_ORDER]) {
        const answer = await send({ method, path });
        expect([answer.status, answer.headers.get('allow')?.split(', ')]).toEqual([
          405,
          expect.arrayContaining(['GET']),
        ]);
        expect((await send({ method, path }, 'Bearer x')).status).toBe(401);
      }
    },
  );

  it.each([
    '/v1/%zz',
    '/v1/orders/%',
    '//v1/me',
    '/v1/me/',
    '/',
    '/livez',
    '/readyz',
    '/metrics',
    '/internal/v1/partners',
    '/openapi.json',
  ])('has nothing anonymous at %s', async (path) =>
    expectProblem(await send({ path }, 'Bearer x'), 401, 'unauthorized'),
  );

  it('frees the key of a call that failed validation', async () => {
    const idempotencyKey = 'used-after-all-1';
    expectProblem(
      await api.post('/v1/orders', { quantity: 1 }, { idempotencyKey }),
      400,
      'validation_failed',
    );
    const answer = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
    expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([202, null]);
  });

  it.each(['', 'seven77', 'x'.repeat(129), 'with space', 'with.dot', 'ünicode', '"quoted-key"'])(
    'refuses the Idempotency-Key "%s"',
    async (value) => {
      const headers: [string, string][] = [JSON_TYPE, ['Idempotency-Key', value], ['Content-Length', '2']];
      expectProblem(
        await send({ method: 'POST', path: '/v1/orders', headers, body: '{}' }),
        400,
        'idempotency_key_required',
      );
    },
  );

  it('refuses two Idempotency-Key headers', async () => {
    const headers = [JSON_TYPE, KEY, KEY, ['Content-Length', '2'] as const];
    expectProblem(
      await send({ method: 'POST', path: '/v1/orders', headers, body: '{}' }),
      400,
      'idempotency_key_required',
    );
  });

  it.each(['eight888', 'x'.repeat(128), 'A-z_0-9-A-z_0-9'])(
    'takes the Idempotency-Key "%s"',
    async (idempotencyKey) => {
      const answer = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
      expect(answer.status).toBe(202);
    },
  );
});
