import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiAnswer, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { exchange } from '../infra/http-edge/raw-client.js';

const CALLBACK_SECRET = randomBytes(20).toString('hex');

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({
    env: { CALLBACK_HOST: '127.0.0.1', CALLBACK_PORT: '0', CALLBACK_SECRET },
  });
  partner = await service.createPartner();
});
afterAll(() => service.stop());

type Port = 'partner' | 'admin' | 'callbacks';
const portOf = (port: Port): number => {
  const { api, admin, callbacksUrl } = service.process;
  return Number(new URL({ partner: api!.url, admin: admin!.url, callbacks: callbacksUrl! }[port]).port);
};

function expectNoStore(answer: ApiAnswer, status: number): void {
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([status, 'no-store']);
}

/** Input that Node's parser rejects and never turns into a request. */
const UNREADABLE: readonly (readonly [string, number, string])[] = [
  ['bytes that are no HTTP', 400, 'nonsense\r\n\r\n'],
  ['a head that is too large', 431, `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`],
  [
    'a body that breaks the rules',
    400,
    'POST /v1/orders HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n',
  ],
];

describe('Cache-Control: no-store (D46)', () => {
  it('is set on every response of the partner port', async () => {
    const { sandbox } = partner;
    const order = { package_id: 'pkg_fr_1gb_7d' };
    const again = { idempotencyKey: 'no-store-replay' };
    expectNoStore(await sandbox.get('/v1/me'), 200);
    expectNoStore(await sandbox.get('/v1/events'), 200);
    expectNoStore(await sandbox.post('/v1/orders', order, again), 202);
    expectNoStore(await sandbox.post('/v1/orders', order, again), 202);
    expectNoStore(await sandbox.post('/v1/orders', '{'), 400);
    expectNoStore(await sandbox.get('/v1/%zz'), 400);
    expectNoStore(await service.partnerApi(null).get('/v1/me'), 401);
    expectNoStore(await sandbox.get('/v1/nowhere'), 404);
    expectNoStore(await sandbox.get('/v1/catalog/pkg_none'), 404);
    expectNoStore(await sandbox.get('/v1/catalog?limit=0'), 400);
    expectNoStore(await sandbox.call('DELETE', '/v1/catalog'), 405);
    expectNoStore(await sandbox.post('/v1/orders', 'x'.repeat(70_000)), 413);
  });

  it('is set on every response of the admin port', async () => {
    const { admin } = service;
    expectNoStore(await admin.get('/internal/v1/partners'), 200);
    expectNoStore(await admin.post('/internal/v1/partners', { name: 'One' }), 201);
    expectNoStore(await admin.post('/internal/v1/partners', {}), 400);
    expectNoStore(await admin.get('/nowhere'), 404);
    for (const path of ['/livez', '/readyz', '/metrics', '/openapi/admin.json']) {
      const { status, headers } = await fetch(admin.baseUrl + path);
      expect([path, status, headers.get('cache-control')]).toEqual([path, 200, 'no-store']);
    }
  });

  it('is set on every response of the callback port', async () => {
    const url = `${service.process.callbacksUrl}/callbacks/nobody`;
    for (const [init, status] of [
      [{ method: 'POST', body: '{}' }, 404],
      [{ method: 'GET' }, 404],
      [{ method: 'HEAD' }, 404],
    ] as const) {
      const answer = await fetch(`${url}/${CALLBACK_SECRET}`, init);
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([status, 'no-store']);
    }
    const odd = await exchange(portOf('callbacks'), 'GET / HTTP/1.1\r\nexpect: everything\r\n\r\n');
    expect([odd.status, odd.headers['cache-control']]).toEqual([404, 'no-store']);
  });

  it.each(
    (['partner', 'admin', 'callbacks'] as const).flatMap((port) =>
      UNREADABLE.map(([what, status, bytes]) => [port, what, status, bytes] as const),
    ),
  )('is set on the response of the %s port to %s: %i', async (port, what, status, bytes) => {
    // Authentication comes before the body, and the callback port has nothing at that path.
    const refused = what.startsWith('a body') ? { partner: 401, admin: 401, callbacks: 404 }[port] : status;
    const answer = await exchange(portOf(port), bytes);
    expect([answer.status, answer.headers['cache-control']]).toEqual([refused, 'no-store']);
  });

  it('is set on the refusal of CONNECT', async () => {
    const answer = await exchange(portOf('partner'), 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n');
    expect([answer.status, answer.headers['cache-control']]).toEqual([401, 'no-store']);
  });

  it('is not set on the catalog, which clients may cache and revalidate', async () => {
    const list = await partner.sandbox.get('/v1/catalog?limit=1');
    expect([list.status, list.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
    const etag = list.headers.get('etag')!;
    const unchanged = await partner.sandbox.get('/v1/catalog?limit=1', { 'if-none-match': etag });
    expect([unchanged.status, unchanged.headers.get('cache-control')]).toEqual([304, 'private, no-cache']);
  });
});
