import type { Money } from '../common/money.js';
import type { PackageEntity } from './package.entity.js';

/** What one partner pays for live packages, when it has terms of its own (D27). Without one, the prices of the catalogue hold. */
export interface PriceList {
  /** Hundredths of a percent on top of the cost; null: the catalogue's own price. */
  readonly marginBps: number | null;
  /** These packages have this price, whatever they cost. */
  readonly prices: Readonly<Record<string, Money>>;
  readonly version: number;
  readonly updatedAt: Date;
}

const MICROS_PER_MINOR_UNIT = 10_000n;
const BPS = 10_000n;

/**
 * The price in minor units of something that costs `costMicros` millionths of a unit, rounded up: nothing is sold
 * below cost and margin. For currencies of two decimals. @throws RangeError when it leaves the safe integers
 */
export function priceWithMargin(costMicros: number, marginBps: number): number {
  const divisor = MICROS_PER_MINOR_UNIT * BPS;
  const exact = BigInt(costMicros) * (BPS + BigInt(marginBps));
  const amount = Number((exact + divisor - 1n) / divisor);
  if (!Number.isSafeInteger(amount)) throw new RangeError('the price is not a safe integer');
  return amount;
}

/**
 * What a partner pays for a package, by the terms of its price list: its own price of the package, if there is one,
 * else the cost with the list's margin. Null when the list says nothing of it: the catalogue's price holds.
 */
export function priceByList(
  item: { readonly costMicros: number | null; readonly currency: string },
  terms: { readonly own: Money | null; readonly marginBps: number | null },
): Money | null {
  if (terms.own) return terms.own;
  if (terms.marginBps === null || item.costMicros === null) return null;
  return { amount: priceWithMargin(item.costMicros, terms.marginBps), currency: item.currency };
}

/** As `priceByList`, of a package of the catalogue. */
export function priceOfPackage(
  item: Pick<PackageEntity, 'id' | 'costMicros' | 'currency'>,
  list: PriceList,
): Money | null {
  const own = Object.hasOwn(list.prices, item.id) ? list.prices[item.id]! : null;
  return priceByList(item, { own, marginBps: list.marginBps });
}

/**
 * The package as the partner of this list sees and pays it. A new list counts as a change of every package, for
 * `updated_since`: of one that the list does not price any more, nothing else would tell.
 */
export function atPartnerPrice(item: PackageEntity, list: PriceList): PackageEntity {
  const price = priceOfPackage(item, list);
  const updatedAt = item.updatedAt > list.updatedAt ? item.updatedAt : list.updatedAt;
  return { ...item, ...(price && paid(item, price)), updatedAt };
}

function paid(
  item: PackageEntity,
  { amount: priceAmount, currency }: Money,
): Pick<PackageEntity, 'priceAmount' | 'currency' | 'retailAmount'> {
  // A suggested retail price in another currency would be a wrong number.
  const retailAmount = currency === item.currency ? item.retailAmount : null;
  return { priceAmount, currency, retailAmount };
}
