import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../src/common/errors/index.js';
import { AUTHENTICATED, startEdgeApp, type EdgeApp } from './edge-app.js';
import { expectOneProblem } from './expect-problem.js';
import { exchange, post, RawClient, request, until } from './raw-client.js';

let edge: EdgeApp;
const start = async (...options: Parameters<typeof startEdgeApp>): Promise<void> => {
  edge = await startEdgeApp(...options);
};
afterEach(() => edge.close());

describe('the gate', () => {
  it.each([401, 403, 429, 503] as const)(
    'ends a call with %d, and adds its headers to the response',
    async (status) => {
      const code = {
        401: 'unauthorized',
        403: 'ip_not_allowed',
        429: 'rate_limited',
        503: 'service_unavailable',
      } as const;
      const refusal = new AppError(code[status], { headers: { 'retry-after': '3' } });
      await start({ authenticate: () => Promise.resolve({ ...AUTHENTICATED, refusal }) });
      const answer = await exchange(edge.port, post('{'));
      await expectOneProblem(edge, answer, status, code[status]);
      expect(answer.headers).toMatchObject({ 'retry-after': '3', 'x-ratelimit-remaining': '7' });
      expect(edge.records[0]).toMatchObject({ keyId: 'key_1', partnerId: 'ptn_1', mode: 'live' });
    },
  );

  it('returns 503 when the database is down, and does not report an unexpected error', async () => {
    const down = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
    await start({ authenticate: () => Promise.reject(down) });
    for (const bytes of [request(), request({ path: '/%zz' }), 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n']) {
      edge.records.length = 0;
      const answer = await exchange(edge.port, bytes);
      await expectOneProblem(edge, answer, 503, 'service_unavailable');
      expect(answer.headers['retry-after']).toBe('1');
    }
    expect(edge.unexpected).toEqual([]);
  });

  it('returns 500 when it throws, reports the error, and admits nobody', async () => {
    const broken = new Error('secret detail');
    await start({ authenticate: () => Promise.reject(broken) });
    const answer = await exchange(edge.port, request());
    await expectOneProblem(edge, answer, 500, 'internal_error');
    expect(answer.body).not.toContain('secret');
    expect(edge.unexpected).toEqual([broken]);
  });

  it('sets the principal on the request', async () => {
    await start();
    let principal: unknown;
    edge.behavior.thing = (req) => {
      principal = req.principal;
      return { seen: true };
    };
    await exchange(edge.port, request());
    expect(principal).toEqual({ partnerId: 'ptn_1' });
  });
});

describe('the client address', () => {
  it.each([
    [0, '203.0.113.9', '127.0.0.1'],
    [1, undefined, '127.0.0.1'],
    [1, '203.0.113.9', '203.0.113.9'],
    [1, '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    [2, '198.51.100.1 ,203.0.113.9', '198.51.100.1'],
    [2, '192.0.2.1, 198.51.100.1, 203.0.113.9', '198.51.100.1'],
    [3, '203.0.113.9', '203.0.113.9'],
    [1, '203.0.113.9:5678', '203.0.113.9'],
    [1, '198.51.100.1:80,  203.0.113.9:5678 ', '203.0.113.9'],
    [1, '[2001:db8::7]:443', '2001:db8::7'],
    [1, '"[2001:db8::7]:443"', '2001:db8::7'],
    [1, '203.0.113.9, ', ''],
    [1, '', ''],
    [1, 'unknown', ''],
    [1, '203.0.113.9, unknown', ''],
    [1, 'for=203.0.113.9', ''],
    [2, '198.51.100.1,, 203.0.113.9', ''],
    [2, '192.0.2.1,, 198.51.100.1:1, 203.0.113.9:2', '198.51.100.1'],
    [1, '::ffff:203.0.113.9', '203.0.113.9'],
    [1, '::ffff:7f00:1', '127.0.0.1'],
    [1, '2001:DB8:0::1', '2001:db8::1'],
    [1, 'fe80::1%eth0', 'fe80::1'],
  ])('is derived with %d hops and X-Forwarded-For %s as %s', async (trustProxyHops, forwarded, address) => {
    await start({ trustProxyHops });
    await exchange(edge.port, request({ headers: { 'x-forwarded-for': forwarded ?? null } }));
    await until(() => edge.records.length === 1);
    expect(edge.seen[0]?.remoteAddress).toBe(address);
    expect(edge.records[0]?.remoteAddress).toBe(address);
  });

  it('cannot be chosen with a second X-Forwarded-For line', async () => {
    await start({ trustProxyHops: 1 });
    await exchange(edge.port, request({ headers: { 'x-forwarded-for': ['198.51.100.1', '203.0.113.9'] } }));
    expect(edge.seen[0]?.remoteAddress).toBe('203.0.113.9');
  });
});

describe('the admin port', () => {
  it('serves its anonymous paths without the gate or a record, for GET and the exact path only', async () => {
    await start({ anonymousPaths: ['/livez'] });
    const anonymous = { headers: { authorization: null } };
    for (const path of ['/livez', '/livez?x=1']) {
      const answer = await exchange(edge.port, request({ ...anonymous, path }));
      expect(answer).toMatchObject({ status: 200, body: '{"status":"ok"}' });
      expect(answer.headers['x-request-id']).toMatch(/^req_/);
    }
    expect(edge.seen).toEqual([]);
    for (const parts of [
      { path: '/livez/' },
      { path: '/livez/x' },
      { path: '/livez', method: 'POST' },
      { path: '/v1/things' },
    ]) {
      edge.records.length = 0;
      const answer = await exchange(edge.port, request({ ...anonymous, ...parts }));
      await expectOneProblem(edge, answer, 401, 'unauthorized');
    }
  });

  it('requires no Idempotency-Key, but validates a given one', async () => {
    await start({ idempotencyKeyRequired: false });
    const without = post('{}', { headers: { 'idempotency-key': null } });
    expect((await exchange(edge.port, without)).status).toBe(201);
    for (const key of ['short', '"key-12345678"', '', ['key-12345678', 'key-12345678']]) {
      const answer = await exchange(edge.port, post('{}', { headers: { 'idempotency-key': key } }));
      expect(answer.problem.code).toBe('idempotency_key_required');
    }
  });
});

describe('a caller that disconnects', () => {
  it.each(['destroy', 'resetAndDestroy'] as const)(
    'is recorded once as 499 before the response: %s',
    async (how) => {
      await start();
      const gone = Promise.withResolvers<void>();
      edge.behavior.thing = async () => {
        await gone.promise;
        return {};
      };
      const client = new RawClient(edge.port).write(Buffer.concat([request(), request()]));
      await until(() => edge.seen.length === 2);
      client.socket[how]();
      await until(() => edge.records.length === 2);
      gone.resolve();
      await sleep(50);
      expect(edge.records).toMatchObject([
        { status: 499, route: '/v1/things', keyId: 'key_1', remoteAddress: '127.0.0.1' },
        { status: 499, route: '/v1/things', keyId: 'key_1', remoteAddress: '127.0.0.1' },
      ]);
      expect(edge.unexpected).toEqual([]);
    },
  );

  it('is recorded once while the gate decides', async () => {
    const decided = Promise.withResolvers<void>();
    await start({ authenticate: () => decided.promise.then(() => AUTHENTICATED) });
    const client = new RawClient(edge.port).write(request());
    await until(() => edge.seen.length === 1);
    client.destroy();
    await until(() => edge.records.length === 1);
    decided.resolve();
    await sleep(50);
    expect(edge.records).toMatchObject([{ status: 499, keyId: null }]);
  });
});

describe('a call that replays its stored response', () => {
  it('has the first id in its header and both ids in its record', async () => {
    await start();
    let own = '';
    edge.behavior.thing = (req, reply) => {
      own = req.id;
      req.replayOf = 'req_FIRST';
      reply.header('x-request-id', 'req_FIRST');
      return {};
    };
    const answer = await exchange(edge.port, request());
    await until(() => edge.records.length === 1);
    expect(answer.headers['x-request-id']).toBe('req_FIRST');
    expect(edge.records[0]).toMatchObject({ requestId: own, replayOf: 'req_FIRST' });
  });
});
