import type { Money } from '../common/money.js';
import type { PackageEntity } from './package.entity.js';

/** One partner's own terms for live packages (D27). Without a list the catalog's prices apply. */
export interface PriceList {
  /** Margin on the cost in basis points; null: the catalog's own price. */
  readonly marginBps: number | null;
  /** Fixed prices by package, whatever the cost. */
  readonly prices: Readonly<Record<string, Money>>;
  readonly version: number;
  readonly updatedAt: Date;
}

const MICROS_PER_MINOR_UNIT = 10_000n;
const BPS = 10_000n;

/**
 * Price in minor units for a cost in micros, rounded up: nothing is sold below cost and margin. Only for currencies
 * with two decimals.
 * @throws RangeError when the price exceeds the safe integers
 */
export function priceWithMargin(costMicros: number, marginBps: number): number {
  const divisor = MICROS_PER_MINOR_UNIT * BPS;
  const exact = BigInt(costMicros) * (BPS + BigInt(marginBps));
  const amount = Number((exact + divisor - 1n) / divisor);
  if (!Number.isSafeInteger(amount)) throw new RangeError('the price is not a safe integer');
  return amount;
}

/**
 * A package's price by a partner's list: its fixed price if there is one, otherwise cost plus the list's margin. Null
 * when the list does not cover it: the catalog's price applies.
 */
export function priceByList(
  item: { readonly costMicros: number | null; readonly currency: string },
  terms: { readonly own: Money | null; readonly marginBps: number | null },
): Money | null {
  if (terms.own) return terms.own;
  if (terms.marginBps === null || item.costMicros === null) return null;
  return { amount: priceWithMargin(item.costMicros, terms.marginBps), currency: item.currency };
}

/** Like `priceByList`, for a package of the catalog. */
export function priceOfPackage(
  item: Pick<PackageEntity, 'id' | 'costMicros' | 'currency'>,
  list: PriceList,
): Money | null {
  const own = Object.hasOwn(list.prices, item.id) ? list.prices[item.id]! : null;
  return priceByList(item, { own, marginBps: list.marginBps });
}

/**
 * The package at the price of this partner's list. A new list counts as a change of every package for `updated_since`,
 * because nothing else would reveal that a package has left the list.
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
