import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 40;
/** The largest multiple of 62 that fits a byte: bytes from it on are dropped, or some letters would be likelier. */
const UNBIASED_LIMIT = 248;

/** A new signing secret: `whsec_` and 40 base62 characters of a CSPRNG (238 bits), used as shown (D29). */
export function newSigningSecret(): string {
  let text = '';
  while (text.length < LENGTH) {
    for (const byte of randomBytes(LENGTH)) {
      if (byte < UNBIASED_LIMIT && text.length < LENGTH) text += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return `whsec_${text}`;
}
