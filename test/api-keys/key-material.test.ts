import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { randomBase62 } from '../../src/common/base62.js';
import { keyPrefix, mintKey } from '../../src/api-keys/key-material.js';

describe('key material', () => {
  it.each([
    ['sandbox', `svc_${'sk'}_test_`],
    ['live', `svc_${'sk'}_live_`],
  ] as const)('builds a %s key from the prefix and 32 base62 characters', (mode, prefix) => {
    const { key, last4 } = mintKey(mode);
    expect(keyPrefix(mode)).toBe(prefix);
    expect(key.slice(0, prefix.length)).toBe(prefix);
    expect(key.slice(prefix.length)).toMatch(/^[0-9A-Za-z]{32}$/);
    expect(last4).toBe(key.slice(-4));
  });

  it('hashes the whole key, prefix included, with SHA-256', () => {
    const { key, hash } = mintKey('live');
    expect(hash.equals(createHash('sha256').update(key).digest())).toBe(true);
  });

  it('draws each of the 62 characters with the same probability', () => {
    const seen = new Map<string, number>();
    const text = randomBase62(620_000);
    for (const character of text) seen.set(character, (seen.get(character) ?? 0) + 1);
    const expected = text.length / 62;
    const chiSquare = [...seen.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(seen.size).toBe(62);
    // With 61 degrees of freedom, values above 130 occur once in a million runs. Bytes modulo 62 give about 4,800.
    expect(chiSquare).toBeLessThan(130);
  });

  it('discards the bytes that would favor the first letters', () => {
    const served = [Buffer.from([248, 255, 0, 61]), Buffer.from([62, 247, 249, 10])];
    expect(randomBase62(4, () => served.shift()!)).toBe('0z0z');
  });

  it('never generates the same key twice', () => {
    const keys = Array.from({ length: 10_000 }, () => mintKey('sandbox').key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
