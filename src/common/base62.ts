import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 62 in a byte: bytes at or above it would favor the first letters (D12). */
const FAIR_BYTES = 256 - (256 % ALPHABET.length);

/** `length` characters of a CSPRNG with equal probability for all 62: bytes that would bias them are dropped. */
export function randomBase62(length: number, random: (size: number) => Buffer = randomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random(length)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return text;
}
