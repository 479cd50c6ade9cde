import type { ProviderCost } from '../esim-provider.js';
import {
  countAt,
  countOrNullAt,
  integerAt,
  numberAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  valueAt,
} from '../http/index.js';

const MICROS = 1_000_000n;
/** Precision of `feePct`; finer digits are rounded up. */
const SHARE_UNITS = 1_000_000_000;

/**
 * An integer amount divided by its divisor, in micros. Fractions of a micro are rounded up, so that no cost is
 * understated. @throws ProviderResponseInvalid
 */
export function toProviderCost(amount: number, divisor: number, currency: string): ProviderCost {
  if (divisor <= 0) throw new ProviderResponseInvalid('currencyDivisor');
  if (!/^[A-Z]{3}$/.test(currency)) throw new ProviderResponseInvalid('currency');
  const scaled = BigInt(amount) * MICROS;
  const whole = scaled / BigInt(divisor);
  const isRounded = amount > 0 && scaled % BigInt(divisor) !== 0n;
  const micros = Number(isRounded ? whole + 1n : whole);
  if (!Number.isSafeInteger(micros)) throw new ProviderResponseInvalid('amount');
  return { micros, currency };
}

/** The amount in `field`, read with the object's `currencyDivisor` and `currency`. @throws ProviderResponseInvalid */
export function moneyAt(object: ResponseObject, field: string): ProviderCost {
  return toProviderCost(
    integerAt(object, field),
    integerAt(object, 'currencyDivisor'),
    textAt(object, 'currency'),
  );
}

/**
 * Unit cost of an offer: its `fixed` amount, its `fee`, and the share `feePct` of `fixed`, rounded up. Zendit does not
 * document its fees. A cost that includes all of them is at worst too high, so nothing is sold below cost. For the same
 * reason, a `discount` does not count.
 * @throws ProviderResponseInvalid for fees that cannot be computed: negative ones, parts of a cent, a share of 100 % or
 * more (it would be a percentage)
 */
export function saleCostOf(cost: ResponseObject): ProviderCost {
  const fixed = integerAt(cost, 'fixed');
  if (fixed < 0) throw new ProviderResponseInvalid('fixed');
  const fee = countOrNullAt(cost, 'fee') ?? 0;
  const share = valueAt(cost, 'feePct') == null ? 0 : numberAt(cost, 'feePct');
  if (share < 0 || share >= 1) throw new ProviderResponseInvalid('feePct');
  const units = BigInt(Math.ceil(Number((share * SHARE_UNITS).toPrecision(15))));
  const ofFixed = (BigInt(fixed) * units + BigInt(SHARE_UNITS - 1)) / BigInt(SHARE_UNITS);
  const amount = fixed + fee + Number(ofFixed);
  return toProviderCost(amount, integerAt(cost, 'currencyDivisor'), textAt(cost, 'currency'));
}

/**
 * Actual cost of a purchase; null when it cannot be read: it is only compared and logged, and must not delay a paid
 * eSIM. Zendit does not document whether `cost` includes `costFee`, so the higher of `cost` and `costBase` + `costFee`
 * counts. The cost may appear higher than it was, never lower.
 */
export function readPurchaseCost(answer: ResponseObject): ProviderCost | null {
  try {
    const amount = Math.max(countAt(answer, 'cost'), baseAndFee(answer));
    return toProviderCost(amount, countAt(answer, 'costCurrencyDivisor'), textAt(answer, 'costCurrency'));
  } catch {
    return null;
  }
}

function baseAndFee(answer: ResponseObject): number {
  const [base, fee] = ['costBase', 'costFee'].map((field) => amountOrNull(answer, field));
  return (base ?? 0) + (fee ?? 0);
}

/** Null when unreadable: the other parts still count. */
function amountOrNull(answer: ResponseObject, field: string): number | null {
  try {
    return countOrNullAt(answer, field);
  } catch {
    return null;
  }
}

const DECIMAL = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;
const BYTE_DIGITS = 9;

/**
 * Converts GB of 10^9 to bytes exactly. `0.1` has no exact binary fraction, so the decimal digits are parsed instead of
 * the value. Fractions of a byte are dropped. @throws ProviderResponseInvalid for negative or unsafe amounts
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
