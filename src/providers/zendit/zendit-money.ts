import type { UpstreamCost } from '../esim-provider.js';
import { type AnswerObject, integerAt, textAt, UpstreamAnswerInvalid } from '../upstream/index.js';

const MICROS = 1_000_000n;

/**
 * An integer amount over its divisor, in millionths; what is smaller than one is rounded up, so that no cost is
 * understated. @throws UpstreamAnswerInvalid
 */
export function toUpstreamCost(amount: number, divisor: number, currency: string): UpstreamCost {
  if (divisor <= 0) throw new UpstreamAnswerInvalid('currencyDivisor');
  if (!/^[A-Z]{3}$/.test(currency)) throw new UpstreamAnswerInvalid('currency');
  const scaled = BigInt(amount) * MICROS;
  const whole = scaled / BigInt(divisor);
  const isRounded = amount > 0 && scaled % BigInt(divisor) !== 0n;
  const micros = Number(isRounded ? whole + 1n : whole);
  if (!Number.isSafeInteger(micros)) throw new UpstreamAnswerInvalid('amount');
  return { micros, currency };
}

/** The amount in `field` beside `currencyDivisor` and `currency`. @throws UpstreamAnswerInvalid */
export function moneyAt(object: AnswerObject, field: string): UpstreamCost {
  return toUpstreamCost(
    integerAt(object, field),
    integerAt(object, 'currencyDivisor'),
    textAt(object, 'currency'),
  );
}
