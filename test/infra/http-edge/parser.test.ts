import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { AUTHENTICATED, startEdgeApp, type EdgeApp } from './edge-app.js';
import { expectOneProblem, expectProblem } from './expect-problem.js';
import { exchange, post, RawClient, request, until } from './raw-client.js';

let edge: EdgeApp;
beforeAll(async () => {
  edge = await startEdgeApp({ requestTimeoutMs: 1000 });
});
afterAll(() => edge.close());
beforeEach(() => {
  edge.records.length = 0;
  edge.unexpected.length = 0;
});

const auth = 'Host: x\r\nAuthorization: Bearer good\r\n';
const postHead = `POST /v1/things HTTP/1.1\r\n${auth}Idempotency-Key: key-12345678\r\nContent-Type: application/json\r\n`;
const UNKNOWN = { method: '-', path: '-', route: null, keyId: null, partnerId: null, mode: null };

describe('unparsable input', () => {
  it.each([
    ['no HTTP', 'hello there\r\n\r\n'],
    ['TLS', Buffer.from('1603010200010001fc0303', 'hex')],
    ['an unknown method', `BREW /v1/things HTTP/1.1\r\n${auth}\r\n`],
    ['an unknown version', `GET /v1/things HTTP/7.0\r\n${auth}\r\n`],
    ['a header without a colon', `GET /v1/things HTTP/1.1\r\n${auth}nonsense\r\n\r\n`],
    ['a space before the colon', `GET /v1/things HTTP/1.1\r\n${auth}a : b\r\n\r\n`],
    ['a NUL in a header', `GET /v1/things HTTP/1.1\r\n${auth}a: b\u0000c\r\n\r\n`],
    ['a bare line feed in a header', `GET /v1/things HTTP/1.1\r\n${auth}a: b\rc\r\n\r\n`],
    [
      'a length and a transfer encoding',
      `${postHead}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'a transfer encoding and a length',
      `${postHead}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    ],
    ['two lengths', `${postHead}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`],
    ['a negative length', `${postHead}Content-Length: -1\r\n\r\n`],
    ['an overflowing length', `${postHead}Content-Length: 99999999999999999999\r\n\r\n`],
    ['chunked before another encoding', `${postHead}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
    ['a relative target', `GET v1/things HTTP/1.1\r\n${auth}\r\n`],
    ['a space in the target', `GET /v1/things /x HTTP/1.1\r\n${auth}\r\n`],
  ])('gets a 400 with an id: %s', async (_name, bytes) => {
    const client = new RawClient(edge.port).write(bytes);
    const answer = await client.answer();
    await expectOneProblem(edge, answer, 400, 'bad_request');
    expect(answer.headers.connection).toBe('close');
    expect(edge.records[0]).toMatchObject({ ...UNKNOWN, remoteAddress: '127.0.0.1' });
    await client.closed();
    client.destroy();
  });

  it.each([
    ['one long header', `GET /v1/things HTTP/1.1\r\n${auth}a: ${'b'.repeat(17_000)}\r\n\r\n`],
    ['many headers', `GET /v1/things HTTP/1.1\r\n${auth}${'ab: cd\r\n'.repeat(6000)}\r\n`],
    ['a long target', `GET /${'x'.repeat(17_000)} HTTP/1.1\r\n${auth}\r\n`],
    ['100 KB of header', `GET /v1/things HTTP/1.1\r\n${auth}a: ${'b'.repeat(100_000)}\r\n\r\n`],
  ])('gets a 431 beyond 16 KB: %s', async (_name, bytes) => {
    await expectOneProblem(edge, await exchange(edge.port, bytes), 431, 'headers_too_large');
    expect(edge.records[0]).toMatchObject(UNKNOWN);
  });

  it('gets a 408 when the head does not arrive in time', async () => {
    const client = new RawClient(edge.port).write('GET /v1/things HTTP/1.1\r\nHost: x\r\n');
    const answer = await client.answer();
    await expectOneProblem(edge, answer, 408, 'request_timeout');
    expect(answer.problem.retryable).toBe(true);
    await client.closed();
  });

  it('is closed without a response when it is HTTP/2', async () => {
    const client = new RawClient(edge.port).write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await client.closed();
    expect(client.text === '' || client.text.startsWith('HTTP/1.1 400')).toBe(true);
  });

  it('gets one response, however much of it arrives', async () => {
    const client = new RawClient(edge.port);
    for (let i = 0; i < 50; i++) {
      client.write('garbage garbage garbage\r\n\r\n');
      await sleep(2);
    }
    await client.closed();
    expect(client.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(edge.records).toHaveLength(1);
  });
});

describe('a malformed or truncated body', () => {
  it.each([
    ['an unknown transfer encoding', `${postHead}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['a bad chunk size', `${postHead}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['a chunk longer than its size', `${postHead}Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}{}\r\n0\r\n\r\n`],
    ['an overflowing chunk size', `${postHead}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`],
  ])('gets a 400 with the id and the rate limit of its call: %s', async (_name, bytes) => {
    const answer = await exchange(edge.port, bytes);
    await expectOneProblem(edge, answer, 400, 'bad_request');
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(edge.records[0]).toMatchObject({ method: 'POST', route: '/v1/things', keyId: 'key_1' });
    expect(edge.unexpected).toEqual([]);
  });

  it('gets a 413 when its chunk extensions never end', async () => {
    const client = new RawClient(edge.port).write(`${postHead}Transfer-Encoding: chunked\r\n\r\n2;`);
    for (let i = 0; i < 20; i++) client.write('x'.repeat(1024));
    await expectOneProblem(edge, await client.answer(), 413, 'payload_too_large');
    client.destroy();
  });

  it.each([
    ['a declared', 'Content-Length: 100\r\n\r\n{"a"'],
    ['a chunked', 'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n'],
  ])('gets a 408 when the rest of %s body does not arrive in time', async (_name, rest) => {
    const client = new RawClient(edge.port).write(`${postHead}${rest}`);
    const answer = await client.answer();
    await expectOneProblem(edge, answer, 408, 'request_timeout');
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(edge.records[0]).toMatchObject({ method: 'POST', route: '/v1/things', keyId: 'key_1' });
    await client.closed();
    expect(edge.unexpected).toEqual([]);
  });

  it('gets a 408 even if it trickles', async () => {
    const client = new RawClient(edge.port).write(`${postHead}Content-Length: 1000\r\n\r\n`);
    const timer = setInterval(() => client.write(' '), 100);
    await expectOneProblem(edge, await client.answer(), 408, 'request_timeout');
    clearInterval(timer);
    client.destroy();
  });

  it('gets no second response after an early first one', async () => {
    const client = new RawClient(edge.port).write(
      `POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a"`,
    );
    expectProblem(await client.answer(), 401, 'unauthorized');
    await client.closed();
    expect(client.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(edge.records).toHaveLength(1);
  });

  it.each(['destroy', 'end'] as const)(
    'is not an unexpected error when the client disconnects: %s',
    async (how) => {
      const client = new RawClient(edge.port).write(`${postHead}Content-Length: 100\r\n\r\n{"a"`);
      await until(() => edge.seen.length > 0);
      await sleep(20);
      client.socket[how]();
      await until(() => edge.records.length > 0);
      await sleep(50);
      expect(edge.records).toMatchObject([{ status: 499, route: '/v1/things', keyId: 'key_1' }]);
      expect(edge.unexpected).toEqual([]);
      client.destroy();
    },
  );
});

describe('an anonymous call with a broken body', () => {
  it('gets its 401 even if the gate is slow', async () => {
    const refusal = { ...AUTHENTICATED, refusal: null };
    const slow = await startEdgeApp({
      requestTimeoutMs: 1000,
      authenticate: async (call) => {
        await sleep(100);
        if (call.headers.authorization) return refusal;
        return {
          ...refusal,
          refusal: new (await import('../../../src/common/errors/index.js')).AppError('unauthorized'),
        };
      },
    });
    const bytes = 'Transfer-Encoding: chunked\r\n\r\nzz\r\n';
    const anonymous = await exchange(slow.port, `POST /v1/things HTTP/1.1\r\nHost: x\r\n${bytes}`);
    await expectOneProblem(slow, anonymous, 401, 'unauthorized');
    slow.records.length = 0;
    const wrongPath = await exchange(slow.port, `POST /nothing HTTP/1.1\r\n${auth}${bytes}`);
    await expectOneProblem(slow, wrongPath, 404, 'not_found');
    slow.records.length = 0;
    await expectOneProblem(slow, await exchange(slow.port, `${postHead}${bytes}`), 400, 'bad_request');
    await slow.close();
  });
});

describe('a pipelined call', () => {
  it('is answered in order, and recorded', async () => {
    const client = new RawClient(edge.port).write(
      Buffer.concat([request(), request({ path: '/nothing' }), post('{"a":1}'), post('{'), request()]),
    );
    const answers = await client.answers(5);
    expect(answers.map((one) => one.status)).toEqual([200, 404, 201, 400, 200]);
    await until(() => edge.records.length === 5);
    expect(edge.records.map((one) => one.requestId).sort()).toEqual(
      answers.map((one) => one.headers['x-request-id']).sort(),
    );
    client.destroy();
  });

  it('gets its response before the refusal of garbage that follows', async () => {
    const client = new RawClient(edge.port).write(
      Buffer.concat([request(), request({ path: '/v1/things/t1' }), Buffer.from('garbage\r\n\r\n')]),
    );
    const answers = await client.answers(3);
    expect(answers.map((one) => one.status)).toEqual([200, 200, 400]);
    expectProblem(answers[2]!, 400, 'bad_request');
    await client.closed();
    expect(edge.records).toHaveLength(3);
  });

  it('gets its response before the timeout of the one that follows', async () => {
    const client = new RawClient(edge.port).write(
      Buffer.concat([request(), Buffer.from(`${postHead}Content-Length: 9\r\n\r\n{`)]),
    );
    const answers = await client.answers(2);
    expect(answers.map((one) => one.status)).toEqual([200, 408]);
    expect(edge.records).toHaveLength(2);
    client.destroy();
  });

  it('continues after a refused small body, which is not parsed as a call', async () => {
    const smuggled = 'GET /v1/things/t1 HTTP/1.1\r\n\r\n';
    const client = new RawClient(edge.port)
      .write(post(smuggled, { headers: { 'content-type': 'text/plain' } }))
      .write(request({ body: smuggled }))
      .write(request());
    const answers = await client.answers(3);
    expect(answers.map((one) => one.status)).toEqual([415, 200, 200]);
    await sleep(50);
    expect(edge.records).toHaveLength(3);
    client.destroy();
  });
});
