import type { Region } from '../catalog/index.js';

/** Words of the providers' names of regions: `Western Europe`, `South America`, `Middle East and North Africa`. */
const NAMES: readonly (readonly [RegExp, Region])[] = [
  [/\b(middle[ -]east|gulf|mena|gcc)\b/i, 'middle-east'],
  [/\b(latin|south|central)[ -]america\b/i, 'latin-america'],
  [/\bnorth[ -]america\b/i, 'north-america'],
  [/\bcaribbean\b/i, 'caribbean'],
  [/\bbalkans?\b/i, 'balkans'],
  [/\b(europe|scandinavia|nordics?)\b/i, 'europe'],
  [/\basia\b/i, 'asia'],
  [/\boceania\b/i, 'oceania'],
  [/\bafrica\b/i, 'africa'],
];
/** A region that stretches over two of ours goes by its first name. */
const OF_TWO = /middle[ -]east\W+(and|&)\W+(north(ern)?\W+)?africa/i;

/** Our region for a provider's name of one; null for none and for names of several. */
export function regionOf(name: string | null): Region | null {
  if (name === null) return null;
  if (OF_TWO.test(name)) return 'middle-east';
  const found = new Set(NAMES.filter(([pattern]) => pattern.test(name)).map(([, region]) => region));
  return found.size === 1 ? [...found][0]! : null;
}
