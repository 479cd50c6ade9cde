import type { ProviderCost } from '../esim-provider.js';
import {
  type ResponseObject,
  countOrNullAt,
  integerAt,
  numberAt,
  textAt,
  ProviderResponseInvalid,
  valueAt,
} from '../http/index.js';

const MICROS = 1_000_000n;
/** Digits of `feePct` that count; what is finer is rounded up. */
const SHARE_UNITS = 1_000_000_000;

/**
 * An integer amount over its divisor, in millionths; what is smaller than one is rounded up, so that no cost is
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

/** The amount in `field` beside `currencyDivisor` and `currency`. @throws ProviderResponseInvalid */
export function moneyAt(object: ResponseObject, field: string): ProviderCost {
  return toProviderCost(
    integerAt(object, field),
    integerAt(object, 'currencyDivisor'),
    textAt(object, 'currency'),
  );
}

/**
 * What one of an offer costs: its `fixed` amount, its `fee`, and the share `feePct` of `fixed`, rounded up. What the fees
 * mean is documented nowhere: a price made of all of them is too high at worst, and no sale is below its cost. A
 * `discount` is not counted on for the same reason.
 * @throws ProviderResponseInvalid for fees that cannot be counted: negative ones, parts of a cent, a share of 100 % and
 * more (it would be percents)
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
