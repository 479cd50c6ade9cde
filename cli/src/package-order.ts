import { usageError } from './exit-codes.js';
import type { Package } from './partner-api.js';

export const DEFAULT_SORT = 'country';
export const SORTS = [DEFAULT_SORT, 'price', '-price', 'data', '-data'] as const;

type Comparison = (one: Package, other: Package) => number;

const byPrice: Comparison = (one, other) =>
  compare(one.price.currency, other.price.currency) ||
  one.price.amount - other.price.amount ||
  compare(one.id, other.id);
const byData: Comparison = (one, other) => dataOf(one) - dataOf(other) || byPrice(one, other);
/** Sorts countries by their English names, then regions, then global packages. */
const byCountry: Comparison = (one, other) =>
  WIDTHS.indexOf(one.type) - WIDTHS.indexOf(other.type) ||
  placeOf(one).localeCompare(placeOf(other), 'en') ||
  byPrice(one, other);

const COMPARISONS: Readonly<Record<string, Comparison>> = {
  country: byCountry,
  price: byPrice,
  '-price': (one, other) => byPrice(other, one),
  data: byData,
  '-data': (one, other) => byData(other, one),
};

/** @throws CliError for a sort that is not in `SORTS` */
export function sortPackages(packages: readonly Package[], sort: string): Package[] {
  const comparison = COMPARISONS[sort];
  if (comparison === undefined)
    throw usageError(`--sort cannot be "${sort}"`, `Use one of: ${SORTS.join(', ')}.`);
  return packages.toSorted(comparison);
}

const WIDTHS: readonly Package['type'][] = ['country', 'regional', 'global'];
const NAMES = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'code' });

function placeOf({ type, coverage, region }: Package): string {
  if (type !== 'country') return region ?? '';
  const [code = ''] = coverage;
  return /^[A-Z]{2}$/.test(code) ? (NAMES.of(code) ?? code) : code;
}

/** Unlimited counts as the maximum, and no data as the minimum. */
function dataOf({ unlimited, data_bytes: bytes }: Package): number {
  return unlimited ? Number.MAX_SAFE_INTEGER : (bytes ?? 0);
}

const compare = (one: string, other: string): number => (one < other ? -1 : Number(one > other));
