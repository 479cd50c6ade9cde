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
type Header = readonly [string, string];
const TOO_LARGE: Header = ['Content-Length', '65537'];
const JSON_TYPE: Header = ['Content-Type', 'application/json'];
const TEXT_TYPE: Header = ['Content-Type', 'text/plain'];
const KEY: Header = ['Idempotency-Key', 'a-valid-key-1'];

interface Faulty extends Partial<RawRequest> {
  readonly path: string;
}

const send = (request: Faulty, authorization = `Bearer ${key}`): Promise<ApiAnswer> =>
  rawRequest(api.baseUrl, {
    ...request,
    headers: [['Authorization', authorization], ...(request.headers ?? [])],
  });

const post = (path: string, headers: readonly Header[], body?: string): Faulty => ({
  ...{ method: 'POST', path, headers },
  ...(body === undefined ? {} : { body }),
});
const length = (bytes: number): Header => ['Content-Length', String(bytes)];
const CHUNKS = `${(70_000).toString(16)}\r\n${'{'.repeat(70_000)}\r\n0\r\n\r\n`;

/** Each entry has its own fault plus every compatible fault from the entries below it. */
const IN_ORDER: [string, Faulty, number, ErrorCode][] = [
  ['an unknown path', post('/v1/nope', [TOO_LARGE]), 404, 'not_found'],
  ['a known path below an unknown version', { path: '/v2/orders?x=1' }, 404, 'not_found'],
  ['an empty id', post('/v1/orders//cancel', [length(0)]), 404, 'not_found'],
  [
    'an unknown method',
    { ...post('/v1/orders', [TEXT_TYPE, TOO_LARGE]), method: 'DELETE' },
    ...([405, 'method_not_allowed'] as const),
  ],
  ['another media type', post('/v1/orders', [TEXT_TYPE, TOO_LARGE]), 415, 'unsupported_media_type'],
  ['no media type', post('/v1/orders', [TOO_LARGE]), 415, 'unsupported_media_type'],
  [
    'a compressed body',
    post('/v1/orders', [JSON_TYPE, ['Content-Encoding', 'gzip'], TOO_LARGE]),
    ...([415, 'unsupported_media_type'] as const),
  ],
  ['a body declared too large', post('/v1/orders', [JSON_TYPE, TOO_LARGE]), 413, 'payload_too_large'],
  [
    'no Idempotency-Key',
    post('/v1/orders', [JSON_TYPE, length(1)], '{'),
    ...([400, 'idempotency_key_required'] as const),
  ],
  [
    'a body that grows too large',
    post('/v1/orders', [JSON_TYPE, KEY, ['Transfer-Encoding', 'chunked']], CHUNKS),
    ...([413, 'payload_too_large'] as const),
  ],
  ['a body that is no JSON', post('/v1/orders', [JSON_TYPE, KEY, length(1)], '{'), 400, 'invalid_json'],
  ['an invalid field', post('/v1/orders', [JSON_TYPE, KEY, length(2)], '{}'), 400, 'validation_failed'],
];

describe('order of checks (D7)', () => {
  it.each(IN_ORDER)('refuses, with a valid key, %s', async (_name, request, status, code) => {
    const answer = await send(request);
    expectProblem(answer, status, code);
    expect(answer.headers.get('x-ratelimit-limit')).not.toBeNull();
    if (code === 'method_not_allowed') expect(answer.headers.get('allow')).toBe('GET, POST');
  });

  it.each(IN_ORDER)('returns 401 without a valid key for %s', async (_name, request) => {
    const answer = await send(request, 'Bearer svc_sk_test_nobody');
    expectProblem(answer, 401, 'unauthorized');
    expect(answer.headers.get('allow')).toBeNull();
  });

  it.each(['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'])(
    'returns 405 for %s where the path exists, and 401 without a valid key',
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
    '/openapi/partner.json',
  ])('serves nothing anonymously at %s', async (path) =>
    expectProblem(await send({ path }, 'Bearer x'), 401, 'unauthorized'),
  );

  it.each(['', 'seven77', 'x'.repeat(129), 'with space', 'with.dot', 'ünicode', '"quoted-key"'])(
    'refuses the Idempotency-Key "%s"',
    async (value) => {
      const headers: Header[] = [JSON_TYPE, ['Idempotency-Key', value], length(2)];
      expectProblem(await send(post('/v1/orders', headers, '{}')), 400, 'idempotency_key_required');
    },
  );

  it('refuses two Idempotency-Key headers', async () => {
    const answer = await send(post('/v1/orders', [JSON_TYPE, KEY, KEY, length(2)], '{}'));
    expectProblem(answer, 400, 'idempotency_key_required');
  });

  it.each(['eight888', 'x'.repeat(128), 'A-z_0-9-A-z_0-9'])(
    'accepts the Idempotency-Key "%s"',
    async (idempotencyKey) => {
      const answer = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
      expect(answer.status).toBe(202);
    },
  );
});
