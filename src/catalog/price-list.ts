import type { Money } from '../common/money.js';
import type { PackageEntity } from './package.entity.js';

/** What one partner pays for live packages (issue 4, part 2). Without one, the prices of the catalogue hold. */
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

/** The package as the partner of this list sees and pays it. */
export function atPartnerPrice(item: PackageEntity, list: PriceList): PackageEntity {
  const own = Object.hasOwn(list.prices, item.id) ? list.prices[item.id] : undefined;
  if (own) return changed(item, list, own.amount, own.currency);
  if (list.marginBps === null || item.costMicros === null) return item;
  return changed(item, list, priceWithMargin(item.costMicros, list.marginBps), item.currency);
}

function changed(item: PackageEntity, list: PriceList, priceAmount: number, currency: string): PackageEntity {
  // A new list counts as a change of what it prices, for `updated_since`.
  const updatedAt = item.updatedAt > list.updatedAt ? item.updatedAt : list.updatedAt;
  // A suggested retail price in another currency would be a wrong number.
  const retailAmount = currency === item.currency ? item.retailAmount : null;
  return { ...item, priceAmount, currency, retailAmount, updatedAt };
}
