import { expect, it } from 'vitest';
import { toSafeText } from '../../src/webhooks/worker/attempt-result.js';

it('replaces invalid UTF-8, removes NUL, keeps everything else', () => {
  expect(toSafeText(Buffer.from('Zoë 🦊\r\n'), false)).toBe('Zoë 🦊\r\n');
  expect(toSafeText(Buffer.from([0x61, 0xff, 0xc3, 0x28, 0x62]), false)).toBe('a\ufffd\ufffd(b');
  expect(toSafeText(Buffer.from('a\0b\0'), false)).toBe('ab');
  expect(toSafeText(Buffer.from([0xed, 0xa0, 0x80]), false).isWellFormed()).toBe(true);
});

it('drops a character that the cap has cut in two', () => {
  const cut = Buffer.from('ab🦊').subarray(0, 4);
  expect(toSafeText(cut, true)).toBe('ab');
  expect(toSafeText(cut, false)).toBe('ab\ufffd');
});
