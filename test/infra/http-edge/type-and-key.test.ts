import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/common/errors/index.js';
import { startEdgeApp, type EdgeApp } from './edge-app.js';
import { exchange, post, type Answer } from './raw-client.js';
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

describe('the content type', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json ; Charset="utf-8"',
    'application/json;',
  ])('may be %s', async (type) => {
    const answer = await exchange(edge.port, post('{"a":1}', { headers: { 'content-type': type } }));
    expect(answer.body).toBe('{"received":{"a":1}}');
  });

  it.each([
    null,
    '',
    'text/plain',
    'garbage',
    'text/json',
    'application/jsonp',
    'application/problem+json',
    'application/json, text/plain',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; version=1',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ])('may not be %s', async (type) => {
    const answer = await exchange(edge.port, post('{"a":1}', { headers: { 'content-type': type } }));
    await expectProblem(answer, 415, 'unsupported_media_type');
  });

  it.each([null, '', 'text/plain', 'garbage', 'application/json', 'application/x-www-form-urlencoded'])(
    'does not matter without a body: %s',
    async (type) => {
      const none = await exchange(edge.port, post('', { headers: { 'content-type': type } }));
      expect(none.body).toBe('{"received":null}');
      const empty = { 'content-type': type, 'content-length': '0' };
      expect((await exchange(edge.port, post('', { headers: empty }))).body).toBe('{"received":null}');
    },
  );

  it.each(['gzip', 'br', 'identity, gzip'])('may not be compressed: %s', async (encoding) => {
    const answer = await exchange(edge.port, post('{}', { headers: { 'content-encoding': encoding } }));
    await expectProblem(answer, 415, 'unsupported_media_type');
  });

  it('may name the identity encoding', async () => {
    expect(
      (await exchange(edge.port, post('{}', { headers: { 'content-encoding': 'Identity' } }))).status,
    ).toBe(201);
  });
});

describe('the Idempotency-Key of a POST', () => {
  it.each([
    ['missing', null],
    ['empty', ''],
    ['of 7 characters', '1234567'],
    ['of 129 characters', 'k'.repeat(129)],
    ['quoted', '"key-12345678"'],
    ['sent twice', ['key-12345678', 'key-12345678']],
    ['sent twice, once empty', ['key-12345678', '']],
    ['with a space', 'key 12345678'],
    ['with a dot', 'key.12345678'],
    ['beyond ASCII', 'key-1234567\xe9'],
  ])('is refused: %s', async (_name, key) => {
    const answer = await exchange(edge.port, post('{}', { headers: { 'idempotency-key': key } }));
    await expectProblem(answer, 400, 'idempotency_key_required');
  });

  it.each(['12345678', 'k'.repeat(128), 'A-z_0-9-'])('may be %s', async (key) => {
    expect((await exchange(edge.port, post('{}', { headers: { 'idempotency-key': key } }))).status).toBe(201);
  });

  it('is checked after type and size, and before the body', async () => {
    const noKey = { 'idempotency-key': null };
    const wrongType = await exchange(
      edge.port,
      post('{', { headers: { ...noKey, 'content-type': 'text/plain' } }),
    );
    expect(wrongType.problem.code).toBe('unsupported_media_type');
    const tooLarge = await exchange(
      edge.port,
      post('', { headers: { ...noKey, 'content-type': 'application/json', 'content-length': '65537' } }),
    );
    expect(tooLarge.problem.code).toBe('payload_too_large');
    const broken = await exchange(edge.port, post('{', { headers: noKey }));
    expect(broken.problem.code).toBe('idempotency_key_required');
  });
});
