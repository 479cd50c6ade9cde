import { randomBytes, randomInt } from 'node:crypto';
import type { ProviderProfile } from '../esim-provider.js';

/** `89` (telecom) and a country and issuer part that no operator uses. */
const ICCID_PREFIX = '8900099';
const ICCID_DIGITS = 19;
const SMDP_ADDRESS = 'smdp.sandbox.example.com';

/** A profile that looks real and installs nowhere (D26): Luhn-valid ICCID of 19 digits with prefix 89 (D23). */
export function mintProfile(): ProviderProfile {
  let digits = ICCID_PREFIX;
  while (digits.length < ICCID_DIGITS - 1) digits += String(randomInt(10));
  return {
    providerEsimId: `sim_${randomBytes(12).toString('hex')}`,
    iccid: digits + luhnDigit(digits),
    smdpAddress: SMDP_ADDRESS,
    matchingId: randomBytes(12).toString('hex').toUpperCase(),
    confirmationCode: null,
    apn: 'sandbox.internet',
  };
}

/** The check digit that makes `digits` followed by it Luhn-valid. */
export function luhnDigit(digits: string): string {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = digit * 2;
    sum += i % 2 === 0 ? (doubled > 9 ? doubled - 9 : doubled) : digit;
  }
  return String((10 - (sum % 10)) % 10);
}
