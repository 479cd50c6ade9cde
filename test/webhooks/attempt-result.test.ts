import { describe, expect, it } from 'vitest';
import {
  keptHeaders,
  MAX_HEADER_VALUE_BYTES,
  MAX_KEPT_HEADERS,
  MAX_KEPT_HEADERS_BYTES,
  REDACTED,
  toSafeText,
} from '../../src/webhooks/worker/attempt-result.js';
import { raw } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';

const many = (count: number, value: string): string[] =>
  Array.from({ length: count }, (_, i) => [`X-${i}`, value]).flat();

describe('a stored response header', () => {
  it('has a lowercase name, and repeated headers are joined', () => {
    expect(keptHeaders(['Content-Type', 'text/plain', 'Via', 'a', 'VIA', 'b'])).toEqual({
      'content-type': 'text/plain',
      via: 'a, b',
    });
  });

  it.each([
    'Set-Cookie',
    'Set-Cookie2',
    'Cookie',
    'Authorization',
    'Proxy-Authorization',
    'Authentication-Info',
    'X-Auth-Token',
    'X-CSRF-Token',
    'X-Api-Key',
    'X-Session-Id',
    'Client-Secret',
  ])('includes %s without its value', (name) => {
    expect(keptHeaders([name, 'abc', name, 'def'])).toEqual({ [name.toLowerCase()]: REDACTED });
  });

  it('is valid text: UTF-8 is decoded, anything else is replaced', () => {
    const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
    expect(keptHeaders(['A', latin1('Zoë 🦊'), 'B', 'a\xffb', 'C', 'a\0b'])).toEqual({
      a: 'Zoë 🦊',
      b: 'a\ufffdb',
      c: 'ab',
    });
    const cut = keptHeaders(['A', 'x'.repeat(MAX_HEADER_VALUE_BYTES - 1) + latin1('🦊')]);
    expect(cut).toEqual({ a: 'x'.repeat(MAX_HEADER_VALUE_BYTES - 1) });
  });

  it('is capped in length, as are the number and the total size of headers', () => {
    expect(Object.keys(keptHeaders(many(MAX_KEPT_HEADERS + 20, 'v')))).toHaveLength(MAX_KEPT_HEADERS);
    expect(keptHeaders(['A', 'x'.repeat(5_000)]).a).toHaveLength(MAX_HEADER_VALUE_BYTES);
    const long = keptHeaders([...many(30, '\xff'.repeat(900)), 'Last', 'short']);
    const size = Object.entries(long).flat().join('');
    expect(Buffer.byteLength(size)).toBeLessThanOrEqual(MAX_KEPT_HEADERS_BYTES);
    expect(long).toMatchObject({ 'x-0': '\ufffd'.repeat(900), last: 'short' });
  });

  it('may have a name that every object inherits', () => {
    const kept = keptHeaders(['__proto__', 'a', 'constructor', 'b']);
    expect(JSON.stringify(kept)).toBe('{"__proto__":"a","constructor":"b"}');
    expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
  });

  it('comes from the final response, not from 1xx responses or trailers', async () => {
    const url = await raw((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
      socket.write('HTTP/1.1 200 OK\r\nX-A: b\r\nSet-Cookie: c=d\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.write('1\r\nb\r\n0\r\nX-Late: e\r\n\r\n');
    });
    const { responseHeaders } = await send(senderWith(), url);
    expect(responseHeaders).toEqual({ 'x-a': 'b', 'set-cookie': REDACTED, 'transfer-encoding': 'chunked' });
  });
});

describe('the stored response body', () => {
  it('replaces invalid UTF-8, removes NUL, and keeps everything else', () => {
    expect(toSafeText(Buffer.from('Zoë 🦊\r\n'), false)).toBe('Zoë 🦊\r\n');
    expect(toSafeText(Buffer.from([0x61, 0xff, 0xc3, 0x28, 0x62]), false)).toBe('a\ufffd\ufffd(b');
    expect(toSafeText(Buffer.from('a\0b\0'), false)).toBe('ab');
    expect(toSafeText(Buffer.from([0xed, 0xa0, 0x80]), false).isWellFormed()).toBe(true);
  });

  it('drops a character that the cap has split', () => {
    const cut = Buffer.from('ab🦊').subarray(0, 4);
    expect(toSafeText(cut, true)).toBe('ab');
    expect(toSafeText(cut, false)).toBe('ab\ufffd');
  });
});
