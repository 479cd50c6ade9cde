import { ValidationFailed } from '../common/errors/index.js';
import { type Money, multiplyMoney } from '../common/money.js';

/**
 * The number of days to buy (D60): `wanted`, or one day without it. Null for a package of fixed days.
 * @param maxDays of the package; null if its days are fixed
 * @param pointer of the field with the number of days, such as `/days`
 * @throws ValidationFailed when the package has fixed days, or not that many
 */
export function chosenDays(maxDays: number | null, wanted: number | null, pointer: string): number | null {
  if (wanted === null) return maxDays === null ? null : 1;
  if (maxDays !== null && wanted >= 1 && wanted <= maxDays) return wanted;
  const [code, message] =
    maxDays === null
      ? ['fixed_days', 'must be left out: the days of this package are fixed']
      : ['range', `must be between 1 and ${maxDays} for this package`];
  throw new ValidationFailed([{ pointer, code, message }]);
}

/** The amounts of a package that is sold by the day; each is for one day. */
interface AmountsPerDay {
  readonly price: Money;
  readonly dataBytes: number | null;
  readonly validityDays: number;
}

/** Price, data and validity of all days; unchanged for a package of fixed days. */
export function forDays<T extends AmountsPerDay>(item: T, days: number | null): T {
  if (days === null) return item;
  return {
    ...item,
    price: multiplyMoney(item.price, days),
    dataBytes: item.dataBytes === null ? null : item.dataBytes * days,
    validityDays: item.validityDays * days,
  };
}
