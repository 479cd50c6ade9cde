import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/**
 * The largest multiple of 62 in a byte. Bytes at or above it are dropped, because they would favor the first letters
 * (D12).
 */
const FAIR_BYTES = 256 - (256 % ALPHABET.length);

/** `length` characters from a CSPRNG; all 62 are equally likely. */
export function randomBase62(length: number, random: (size: number) => Buffer = randomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random(length)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return text;
}
