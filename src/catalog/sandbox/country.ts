import type { Region } from '../package.js';

/**
 * How expensive roaming is in a country. Real wholesale rates differ by an order of magnitude between, say, Spain and
 * the Cook Islands; a partner who tests margins and price filters needs that spread.
 */
export const PRICE_TIERS = ['budget', 'standard', 'premium', 'remote'] as const;
export type PriceTier = (typeof PRICE_TIERS)[number];

/** A mobile operator and the radio generations a roaming customer gets on it, oldest first. */
export interface Operator {
  readonly name: string;
  readonly generations: readonly string[];
}

/** One country the sandbox sells in. */
export interface SandboxCountry {
  /** ISO 3166-1 alpha-2 (D10). */
  readonly code: string;
  readonly name: string;
  readonly priceTier: PriceTier;
  /** A country can be in several: Croatia is sold with `europe` and with `balkans`. */
  readonly regions: readonly Region[];
  /** Most preferred first; regional and global packages use only that one. Never empty. */
  readonly operators: readonly [Operator, ...Operator[]];
}

type NewestGeneration = '5G' | '4G';

// Where 5G runs, 3G is mostly switched off; where 4G is the newest, 3G still fills the gaps.
const GENERATIONS: Readonly<Record<NewestGeneration, readonly string[]>> = {
  '5G': ['4G', '5G'],
  '4G': ['3G', '4G'],
};

/**
 * A row of the country tables. Operators are grouped by the newest generation they offer to roamers.
 *
 * @throws Error when the row names no operator: a package without a network could not be sold.
 */
export function country(
  code: string,
  name: string,
  priceTier: PriceTier,
  regions: readonly Region[],
  operatorNames: Readonly<Partial<Record<NewestGeneration, readonly string[]>>>,
): SandboxCountry {
  const withGeneration = (newest: NewestGeneration): Operator[] =>
    (operatorNames[newest] ?? []).map((operator) => ({ name: operator, generations: GENERATIONS[newest] }));
  const [preferred, ...others] = [...withGeneration('5G'), ...withGeneration('4G')];
  if (preferred === undefined) throw new Error(`sandbox country ${code} has no operator`);
  return { code, name, priceTier, regions, operators: [preferred, ...others] };
}
