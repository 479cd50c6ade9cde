import { ProviderResponseInvalid } from '../http/index.js';

const DECIMAL = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;
const BYTE_DIGITS = 9;

/**
 * Bytes of an amount in GB of 10^9, exactly: `0.1` has no binary fraction, so its decimal digits are read and not its
 * value. Less than a byte is dropped. @throws ProviderResponseInvalid for negative or unsafe amounts
 */
export function gigabytesToBytes(dataGB: number, path: string): number {
  const match = DECIMAL.exec(String(dataGB));
  if (!match) throw new ProviderResponseInvalid(path);
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const shift = BYTE_DIGITS + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  const bytes = Number(shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift));
  if (!Number.isSafeInteger(bytes)) throw new ProviderResponseInvalid(path);
  return bytes;
}
