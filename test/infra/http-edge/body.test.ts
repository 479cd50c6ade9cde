import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/common/errors/index.js';
import { startEdgeApp, type EdgeApp } from './edge-app.js';
import { expectOneProblem } from './expect-problem.js';
import { exchange, post, RawClient, until } from './raw-client.js';

const MAX_BODY_BYTES = 65_536;
let edge: EdgeApp;
beforeAll(async () => {
  edge = await startEdgeApp();
});
afterAll(() => edge.close());
beforeEach(() => {
  edge.records.length = 0;
  edge.unexpected.length = 0;
});

const chunk = (bytes: string): string => `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`;
const chunkedHead = post('', {
  headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
}).toString('latin1');

describe('a JSON body', () => {
  const accepted: readonly [string, string | Buffer, unknown][] = [
    ['an object', '{"a":[1,"x",null,true]}', { a: [1, 'x', null, true] }],
    ['a bare value', '7', 7],
    ['a byte order mark before it', '\ufeff{"a":1}', { a: 1 }],
    ['characters beyond the BMP, as bytes and as escapes', '{"a":"😀\\ud83d\\ude00"}', { a: '😀😀' }],
    ['a depth of 32', '['.repeat(32) + ']'.repeat(32), JSON.parse('['.repeat(32) + ']'.repeat(32))],
    ['a constructor without a prototype', '{"constructor":1}', { constructor: 1 }],
    ['the forbidden names inside texts', '{"a":"\\"__proto__\\":1"}', { a: '"__proto__":1' }],
    ['a repeated name, of which the last counts', '{"a":1,"a":2}', { a: 2 }],
    ['the smallest numbers', '{"a":1e-400,"b":-0}', { a: 0, b: 0 }],
  ];
  it.each(accepted)('may have %s', async (_name, body, received) => {
    const answer = await exchange(edge.port, post(body));
    expect(JSON.parse(Buffer.from(answer.body, 'latin1').toString('utf8'))).toEqual({ received });
  });

  it('may have 1,000 names in total, and no more', async () => {
    const names = (count: number): string =>
      JSON.stringify({
        list: Array.from({ length: 3 }, () => ({})),
        ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0])),
      });
    expect((await exchange(edge.port, post(names(999)))).status).toBe(201);
    const answer = await exchange(edge.port, post(names(1000)));
    expect(answer.problem).toMatchObject({ code: 'validation_failed', errors: [{ code: 'too_many_keys' }] });
  });

  it('may have 256 list elements in total, and no more', async () => {
    const lists = (count: number): string =>
      JSON.stringify({
        empty: [],
        texts: [',', '"[', '', '\\\\'],
        list: Array.from({ length: count }, () => [0]),
      });
    expect((await exchange(edge.port, post(lists(126)))).status).toBe(201);
    const answer = await exchange(edge.port, post(lists(127)));
    expect(answer.problem).toMatchObject({
      code: 'validation_failed',
      errors: [{ code: 'too_many_elements' }],
    });
  });

  it('counts a repeated name each time', async () => {
    const answer = await exchange(edge.port, post(`{${'"a":1,'.repeat(1_000)}"a":1}`));
    expect(answer.problem).toMatchObject({ code: 'validation_failed', errors: [{ code: 'too_many_keys' }] });
  });

  const refusals: readonly [string, string | Buffer, ErrorCode, string?][] = [
    ['that is cut off', '{"a":', 'invalid_json'],
    ['with a trailing comma', '{"a":1,}', 'invalid_json'],
    ['with NaN', '{"a":NaN}', 'invalid_json'],
    ['of blanks only', '  ', 'invalid_json'],
    ['of two values', '{}{}', 'invalid_json'],
    ['with a raw NUL in a text', '{"a":"\u0000"}', 'invalid_json'],
    ['with __proto__', '{"__proto__":{"x":1}}', 'invalid_json'],
    ['with __proto__ deep inside', '{"a":[{"__proto__":null}]}', 'invalid_json'],
    ['with __proto__ in escapes', '{"\\u005f_pro\\u0074o_\\u005F":1}', 'invalid_json'],
    ['with constructor.prototype', '{"constructor":{"prototype":{}}}', 'invalid_json'],
    ['with constructor.prototype in escapes', '{"\\u0063onstructor":{"prototyp\\u0065":1}}', 'invalid_json'],
    ['of 50,000 opened arrays', '['.repeat(50_000), 'invalid_json'],
    ['of 30,000 nested arrays', '['.repeat(30_000) + ']'.repeat(30_000), 'validation_failed', 'too_deep'],
    [
      'of 9,000 nested objects',
      '{"a":'.repeat(9000) + '1' + '}'.repeat(9000),
      'validation_failed',
      'too_deep',
    ],
    ['of 32,000 elements', `[${'0,'.repeat(31_999)}0]`, 'validation_failed', 'too_many_elements'],
    ['of depth 33', '['.repeat(33) + ']'.repeat(33), 'validation_failed', 'too_deep'],
    ['in Latin-1', Buffer.from('{"a":"\xe9"}', 'latin1'), 'validation_failed', 'invalid_utf8'],
    ['in UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le'), 'validation_failed', 'invalid_utf8'],
    [
      'with an overlong encoding',
      Buffer.from('7b2261223a22c0af227d', 'hex'),
      'validation_failed',
      'invalid_utf8',
    ],
    [
      'with an encoded surrogate',
      Buffer.from('7b2261223a22eda080227d', 'hex'),
      'validation_failed',
      'invalid_utf8',
    ],
    ['with a lone surrogate', '{"a":"\\ud800"}', 'validation_failed', 'invalid_text'],
    ['with surrogates the wrong way round', '{"a":"\\ude00\\ud83d"}', 'validation_failed', 'invalid_text'],
    ['with a lone surrogate in a name', '{"\\udfff":1}', 'validation_failed', 'invalid_text'],
    ['with an escaped NUL', '{"a":"x\\u0000y"}', 'validation_failed', 'invalid_text'],
    ['with an escaped NUL in a name', '{"a\\u0000":1}', 'validation_failed', 'invalid_text'],
    ['of one bare lone surrogate', '"\\ud800"', 'validation_failed', 'invalid_text'],
    ['with a number that is no number', '{"a":1e400}', 'validation_failed', 'out_of_range'],
  ];
  it.each(refusals)('is refused with %s', async (_name, body, code, reason) => {
    const answer = await exchange(edge.port, post(body));
    await expectOneProblem(edge, answer, 400, code);
    expect(answer.problem.errors?.map((one) => one.code)).toEqual(reason ? [reason] : undefined);
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(edge.unexpected).toEqual([]);
  });

  it('returns the pointer to the error, and none of the content', async () => {
    const answer = await exchange(edge.port, post('{"list":[0,{"a/b~c":"secret\\ud800"}]}'));
    expect(answer.problem.errors).toEqual([
      { pointer: '/list/1/a~1b~0c', code: 'invalid_text', message: expect.any(String) as string },
    ]);
    expect(answer.body).not.toContain('secret');
    const longName = await exchange(edge.port, post(JSON.stringify({ [`${'n'.repeat(5000)}`]: '\ud800' })));
    expect(longName.problem.errors?.[0]?.pointer).toBe('');
  });

  it('keeps the connection open when it was refused after it was read', async () => {
    const client = new RawClient(edge.port)
      .write(post('{'))
      .write(post('{"a":"\\u0000"}'))
      .write(post('{"a":1}'));
    const answers = await client.answers(3);
    expect(answers.map((one) => one.status)).toEqual([400, 400, 201]);
    expect(answers.map((one) => one.headers.connection)).toEqual(['keep-alive', 'keep-alive', 'keep-alive']);
    client.destroy();
  });
});

describe('the size of a body', () => {
  const ofSize = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));

  it('may be 65,536 bytes, declared or chunked', async () => {
    expect((await exchange(edge.port, post(ofSize(MAX_BODY_BYTES)))).status).toBe(201);
    expect(
      (await exchange(edge.port, `${chunkedHead}${chunk(ofSize(MAX_BODY_BYTES))}0\r\n\r\n`)).status,
    ).toBe(201);
  });

  it('is refused with 413 based on its declared length, before any of it is sent', async () => {
    const head = post('', { headers: { 'content-type': 'application/json', 'content-length': '65537' } });
    const client = new RawClient(edge.port).write(head);
    const answer = await client.answer();
    await expectOneProblem(edge, answer, 413, 'payload_too_large');
    expect(answer.headers.connection).toBe('close');
    await client.closed();
  });

  it('is refused with 413 when it arrives all at once', async () => {
    const answer = await exchange(edge.port, post(ofSize(MAX_BODY_BYTES + 1)));
    await expectOneProblem(edge, answer, 413, 'payload_too_large');
  });

  it('is refused with 413 when its chunks add up to more', async () => {
    const client = new RawClient(edge.port).write(chunkedHead);
    const piece = chunk('x'.repeat(8192));
    for (let i = 0; i < 9; i++) client.write(piece);
    const answer = await client.answer();
    await expectOneProblem(edge, answer, 413, 'payload_too_large');
    expect(answer.headers.connection).toBe('close');
    await client.closed();
  });

  it('is refused so that a client can read the response while it is still uploading', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        fetch(`http://127.0.0.1:${edge.port}/v1/things`, {
          method: 'POST',
          headers: {
            authorization: 'Bearer good',
            'content-type': 'application/json',
            'idempotency-key': 'key-12345678',
          },
          body: 'x'.repeat(900_000),
        }),
      ),
    );
    expect(answers.map((one) => one.status)).toEqual(Array.from({ length: 10 }, () => 413));
    await until(() => edge.records.length === 10);
    expect(edge.records.every((one) => one.status === 413)).toBe(true);
  });

  it('ends the connection of a client that never stops sending', async () => {
    const client = new RawClient(edge.port).write(chunkedHead);
    const piece = chunk('x'.repeat(65_000));
    const timer = setInterval(() => client.isClosed || client.write(piece), 1);
    await client.closed();
    clearInterval(timer);
    expect((await client.answer()).status).toBe(413);
    expect(edge.records).toHaveLength(1);
    client.destroy();
  });
});

describe('Expect: 100-continue', () => {
  const head = (headers: Record<string, string> = {}): Buffer =>
    post('', {
      headers: {
        'content-type': 'application/json',
        'content-length': '7',
        expect: '100-Continue',
        ...headers,
      },
    });

  it('is sent once the head has passed the checks', async () => {
    const client = new RawClient(edge.port).write(head());
    await until(() => client.text.startsWith('HTTP/1.1 100 Continue\r\n\r\n'));
    client.write('{"a":1}');
    expect((await client.answer()).status).toBe(201);
    client.destroy();
  });

  it('is not sent in HTTP/1.0', async () => {
    const bytes = Buffer.concat([head(), Buffer.from('{"a":1}')]).toString('latin1');
    const client = new RawClient(edge.port).write(bytes.replace('HTTP/1.1', 'HTTP/1.0'));
    expect((await client.answer()).status).toBe(201);
    expect(client.text).not.toContain(' 100 ');
    client.destroy();
  });

  it.each([
    ['401', { authorization: 'Bearer bad' }],
    ['415', { 'content-type': 'text/plain' }],
    ['413', { 'content-length': '70000' }],
    ['400', { 'idempotency-key': 'short' }],
  ])('is not sent when the head is refused with %s, and the connection closes', async (status, headers) => {
    const client = new RawClient(edge.port).write(head(headers));
    const answer = await client.answer();
    expect(client.text).toMatch(new RegExp(`^HTTP/1.1 ${status}`));
    expect(answer.headers.connection).toBe('close');
    await client.closed();
  });
});
