import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CursorCodec, SecretBox } from '../../../src/infra/crypto/index.js';

const key = (id: string) => ({ id, key: randomBytes(32) });

describe('SecretBox', () => {
  const current = key('k2');
  const old = key('k1');

  it('opens what it sealed, with a different ciphertext each time', () => {
    const box = new SecretBox({ secretKeys: [current] });
    const sealed = box.seal('secret ✓', 'row-1');
    expect(box.open(sealed, 'row-1')).toBe('secret ✓');
    expect(box.seal('secret ✓', 'row-1')).not.toBe(sealed);
    expect(sealed).not.toContain('secret');
  });

  it('opens with an older key of the ring and seals with the first', () => {
    const sealed = new SecretBox({ secretKeys: [old] }).seal('x', 'row-1');
    const rotated = new SecretBox({ secretKeys: [current, old] });
    expect(rotated.open(sealed, 'row-1')).toBe('x');
    expect(rotated.seal('x', 'row-1')).toMatch(/^v1\.k2\./);
    expect(() => new SecretBox({ secretKeys: [current] }).open(sealed, 'row-1')).toThrow(/SECRETS_KEYS/);
  });

  it('refuses a ciphertext that was altered or belongs to another row', () => {
    const box = new SecretBox({ secretKeys: [current] });
    const sealed = box.seal('x', 'row-1');
    expect(() => box.open(sealed, 'row-2')).toThrow();
    // The last base64 character has unused bits.
    const flipped = sealed.slice(0, -2) + (sealed.at(-2) === 'A' ? 'B' : 'A') + sealed.at(-1)!;
    expect(() => box.open(flipped, 'row-1')).toThrow();
    expect(() => box.open('nonsense', 'row-1')).toThrow();
  });
});

describe('CursorCodec', () => {
  const codec = new CursorCodec({ secretKeys: [key('k1')] });
  const scope = ['orders', 'ptn_a', 'sandbox', { status: 'issued' }];

  it('returns the position for the same list, whatever the order of its filters', () => {
    const cursor = codec.encode(['2026-11-21 10:00:00.123456+00', 'ord_1'], ['x', { a: 1, b: 2 }]);
    expect(codec.decode(cursor, ['x', { b: 2, a: 1 }])).toEqual(['2026-11-21 10:00:00.123456+00', 'ord_1']);
  });

  it.each([
    ['another partner', ['orders', 'ptn_b', 'sandbox', { status: 'issued' }]],
    ['another mode', ['orders', 'ptn_a', 'live', { status: 'issued' }]],
    ['another filter', ['orders', 'ptn_a', 'sandbox', { status: 'failed' }]],
    ['another list', ['esims', 'ptn_a', 'sandbox', { status: 'issued' }]],
  ])('refuses the cursor of %s', (_what, other) => {
    const cursor = codec.encode([1], scope);
    expect(() => codec.decode(cursor, other)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
  });

  it('refuses a cursor with any one character changed, and arbitrary texts', () => {
    const cursor = codec.encode([1, 'ord_1'], scope);
    for (let i = 0; i < cursor.length; i++) {
      const changed = cursor.slice(0, i) + (cursor[i] === 'A' ? 'B' : 'A') + cursor.slice(i + 1);
      expect(() => codec.decode(changed, scope)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
    }
    for (const text of ['', 'x', `${cursor}=`, `${cursor} `, ` ${cursor}`, '\0', '💥', 'A'.repeat(5_000)]) {
      expect(() => codec.decode(text, scope)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
    }
  });
});
