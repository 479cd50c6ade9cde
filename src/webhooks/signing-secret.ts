import { randomBase62 } from '../common/base62.js';

const LENGTH = 40;

/** A new signing secret: `whsec_` and 40 base62 characters of a CSPRNG (238 bits), used as shown (D29). */
export function newSigningSecret(): string {
  return `whsec_${randomBase62(LENGTH)}`;
}
