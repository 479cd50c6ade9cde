import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/common/errors/index.js';
import { startEdgeApp, type EdgeApp } from './edge-app.js';
import { exchange, post, RawClient, request, until, type Answer, type RequestParts } from './raw-client.js';
import { expectOneProblem } from './expect-problem.js';

let edge: EdgeApp;
beforeAll(async () => {
  edge = await startEdgeApp();
});
afterAll(() => edge.close());
beforeEach(() => {
  edge.records.length = 0;
  edge.seen.length = 0;
});

const expectProblem = (answer: Answer, status: number, code: ErrorCode): Promise<void> =>
  expectOneProblem(edge, answer, status, code);

describe('an anonymous call', () => {
  const cases: readonly [string, RequestParts][] = [
    ['a known route', {}],
    ['an unknown path', { path: '/nothing' }],
    ['a wrong method', { method: 'DELETE' }],
    ['HEAD', { method: 'HEAD' }],
    ['OPTIONS', { method: 'OPTIONS' }],
    ['OPTIONS *', { method: 'OPTIONS', path: '*' }],
    ['TRACE', { method: 'TRACE' }],
    ['PURGE', { method: 'PURGE' }],
    ['QUERY', { method: 'QUERY' }],
    ['PROPFIND', { method: 'PROPFIND' }],
    ['a target that begins with a star', { path: '*v1/things' }],
    ['a target in absolute form', { path: 'http://partner.test/v1/things' }],
    ['a target of another scheme', { path: 'ftp://partner.test/v1/things' }],
    ['bad percent-encoding', { path: '/v1/things/%zz' }],
    ['bad percent-encoding of an unknown path', { method: 'POST', path: '/%c0%af' }],
    ['a path parameter of 10,000 characters', { path: `/v1/things/${'t'.repeat(10_000)}` }],
    ['no Host', { headers: { host: null } }],
    ['an expectation', { headers: { expect: 'the-inquisition' } }],
    ['an announced body of a gigabyte', { method: 'POST', headers: { 'content-length': '1000000000' } }],
    ['a body of another type', { method: 'POST', body: 'a=b', headers: { 'content-type': 'text/plain' } }],
    ['unparsable JSON', { method: 'POST', body: '{' }],
    ['two Authorization headers', { headers: { authorization: ['Bearer good', 'Bearer good'] } }],
    ['a broken chunked body', { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'XX' }],
    ['HTTP/1.0', { version: 'HTTP/1.0' }],
  ];
  it.each(cases)('receives 401 before any other check: %s', async (_name, parts) => {
    const headers = { authorization: null, ...parts.headers };
    const bytes = request({ ...parts, headers });
    const answer = await exchange(
      edge.port,
      parts.headers?.['transfer-encoding'] ? withoutLength(bytes) : bytes,
    );
    if (parts.method === 'HEAD') {
      expect(answer.body).toBe('');
      expect(answer.status).toBe(401);
      expect(answer.headers['x-request-id']).toMatch(/^req_/);
      return;
    }
    await expectProblem(answer, 401, 'unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  it('receives 401 for CONNECT', async () => {
    const answer = await exchange(
      edge.port,
      'CONNECT partner.test:443 HTTP/1.1\r\nHost: partner.test\r\n\r\n',
    );
    await expectProblem(answer, 401, 'unauthorized');
    expect(edge.records[0]).toMatchObject({ method: 'CONNECT', keyId: null, route: null });
  });
});

function withoutLength(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(/content-length: \d+\r\n/, ''), 'latin1');
}

describe('an admitted call', () => {
  it('has the request id and the gate headers in its response', async () => {
    const answer = await exchange(edge.port, request({ headers: { 'x-request-id': 'my-own.id_1' } }));
    expect(answer.status).toBe(200);
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    await until(() => edge.records.length === 1);
    const [record] = edge.records;
    expect(record).toMatchObject({
      requestId: answer.headers['x-request-id'],
      clientRequestId: 'my-own.id_1',
      method: 'GET',
      route: '/v1/things',
      path: '/v1/things',
      status: 200,
      keyId: 'key_1',
      partnerId: 'ptn_1',
      mode: 'live',
      remoteAddress: '127.0.0.1',
      replayOf: null,
      errorCode: null,
    });
    expect(record?.latencyMs).toBeGreaterThan(0);
    expect(record?.latencyMs).toBeLessThan(30_000);
  });

  it.each([['x'.repeat(65)], ['has space'], ['semi;colon'], ['']])(
    'does not log a client request id that is malformed: %s',
    async (id) => {
      await exchange(edge.port, request({ headers: { 'x-request-id': id } }));
      await until(() => edge.records.length === 1);
      expect(edge.records[0]?.clientRequestId).toBeNull();
    },
  );

  it('records the route pattern and the path without its query', async () => {
    await exchange(edge.port, request({ path: '/v1/things/t1?secret=1#x' }));
    await until(() => edge.records.length === 1);
    expect(edge.records[0]).toMatchObject({ route: '/v1/things/:id', path: '/v1/things/t1' });
  });

  it('passes every header line to the gate, including those past the thousandth', async () => {
    const many = Array.from({ length: 1500 }, () => 'a:\r\n').join('');
    const bytes = `GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n${many}authorization: Bearer two\r\n\r\n`;
    await expectProblem(await exchange(edge.port, bytes), 401, 'unauthorized');
    expect(edge.seen[0]?.rawHeaders.filter((one) => one.startsWith('Bearer'))).toEqual([
      'Bearer good',
      'Bearer two',
    ]);
  });

  it('is served in absolute form, whatever host it names', async () => {
    const answer = await exchange(edge.port, request({ path: 'HTTP://other.test:81/v1/things/t1?x=1' }));
    expect(answer.body).toBe('{"id":"t1"}');
    expect(edge.seen[0]?.url).toBe('HTTP://other.test:81/v1/things/t1?x=1');
  });

  it.each(['*v1/things', 'ftp://partner.test/v1/things', 'http://partner.test?/v1/things', '//v1/things'])(
    'matches no route for the target %s',
    async (path) => {
      await expectProblem(await exchange(edge.port, request({ path })), 404, 'not_found');
    },
  );

  it.each(['?a=%zz', '?%', '?a[b]=%c0%af&__proto__=1', '?a=%00', '?=&&=', '#%zz'])(
    'never fails for the query %s',
    async (query) => {
      const answer = await exchange(edge.port, request({ path: `/v1/query${query}` }));
      expect(answer.status).toBe(200);
    },
  );

  it.each(['/nothing', '/v1/things/', '/v1/things/t1/nothing', '/v1//things', '/V1/things', '/'])(
    'receives 404 for %s',
    async (path) => {
      await expectProblem(await exchange(edge.port, request({ path })), 404, 'not_found');
      expect(edge.records[0]?.route).toBeNull();
    },
  );

  it('receives 404 rather than 415 or 405 when a path parameter is empty', async () => {
    const noType = { headers: { 'content-type': 'text/plain' } };
    await expectProblem(
      await exchange(edge.port, post('x', { ...noType, path: '/v1/things//close' })),
      404,
      'not_found',
    );
    edge.records.length = 0;
    await expectProblem(await exchange(edge.port, post('x', { path: '/v1/things/' })), 404, 'not_found');
  });

  it.each(['DELETE', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'PURGE', 'QUERY', 'LINK'])(
    'receives 405 with Allow for %s',
    async (method) => {
      const answer = await exchange(edge.port, request({ method }));
      await expectProblem(answer, 405, 'method_not_allowed');
      expect(answer.headers.allow?.split(', ').sort()).toEqual(['GET', 'POST']);
    },
  );

  it('receives 405 for HEAD, without a body', async () => {
    const client = new RawClient(edge.port).write(request({ method: 'HEAD' }));
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 405, body: '' });
    expect(answer.headers).toMatchObject({ allow: 'GET, POST', 'content-type': 'application/problem+json' });
    await until(() => edge.records.length === 1);
    expect(edge.records[0]?.requestId).toBe(answer.headers['x-request-id']);
    expect(client.text.endsWith('\r\n\r\n')).toBe(true);
    client.destroy();
  });

  it('receives 405 for CONNECT', async () => {
    const bytes =
      'CONNECT partner.test:443 HTTP/1.1\r\nHost: partner.test\r\nAuthorization: Bearer good\r\n\r\n';
    const answer = await exchange(edge.port, bytes);
    await expectProblem(answer, 405, 'method_not_allowed');
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(edge.records[0]).toMatchObject({ method: 'CONNECT', path: '/partner.test:443', keyId: 'key_1' });
  });

  it.each([
    ['missing', null],
    ['empty', ''],
    ['sent twice', ['a.test', 'a.test']],
  ])('receives 400 when Host is %s', async (_name, host) => {
    await expectProblem(await exchange(edge.port, request({ headers: { host } })), 400, 'bad_request');
  });

  it('needs no Host in HTTP/1.0', async () => {
    const answer = await exchange(edge.port, request({ version: 'HTTP/1.0', headers: { host: null } }));
    expect(answer.status).toBe(200);
  });

  it('receives 417 for an expectation other than 100-continue', async () => {
    const answer = await exchange(edge.port, request({ headers: { expect: '200-ok' } }));
    await expectProblem(answer, 417, 'expectation_failed');
  });

  it.each(['/v1/things/%', '/v1/things/%zz', '/%c0%af', '/v1/things/%e0%a4'])(
    'receives 400 for the bad percent-encoding of %s',
    async (path) => {
      const answer = await exchange(edge.port, request({ path }));
      await expectProblem(answer, 400, 'bad_request');
      expect(answer.headers['x-ratelimit-remaining']).toBe('7');
      expect(edge.records[0]).toMatchObject({ keyId: 'key_1', route: null, path });
    },
  );

  it('receives 414 for a URL of more than 4096 characters', async () => {
    const longest = `/v1/things?${'q'.repeat(4096 - 11)}`;
    expect((await exchange(edge.port, request({ path: longest }))).status).toBe(200);
    await until(() => edge.records.length === 1);
    edge.records.length = 0;
    await expectProblem(await exchange(edge.port, request({ path: `${longest}q` })), 414, 'uri_too_long');
  });

  it('reaches its route with a parameter of any length', async () => {
    const answer = await exchange(edge.port, request({ path: `/v1/things/${'t'.repeat(4000)}` }));
    expect(answer.status).toBe(200);
    await until(() => edge.records.length === 1);
    edge.records.length = 0;
    const other = await exchange(edge.port, request({ path: `/v1/things/${'x'.repeat(4000)}` }));
    await expectProblem(other, 404, 'not_found');
  });
});
