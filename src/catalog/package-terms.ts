import type { Money } from '../common/money.js';

/** How an amount of data was counted: 1 GB is 10^9 bytes, or 2^30. */
export const DATA_UNITS = ['decimal', 'binary'] as const;
export type DataUnit = (typeof DATA_UNITS)[number];

/** `total`: one allowance for the whole validity. `daily`: an allowance per day. */
export const PLAN_KINDS = ['total', 'daily', 'unlimited'] as const;
export type PlanKind = (typeof PLAN_KINDS)[number];

export const GENERATIONS = ['3G', '4G', '5G'] as const;
export type Generation = (typeof GENERATIONS)[number];

export const TOPUP_KINDS = ['data', 'days', 'plan'] as const;
export type TopupKind = (typeof TOPUP_KINDS)[number];

export const TOPUP_BEHAVIORS = ['adds', 'queues', 'replaces', 'unknown'] as const;
export type TopupBehavior = (typeof TOPUP_BEHAVIORS)[number];

export const FAIR_USE_PERIODS = ['day', 'plan'] as const;
export const AFTER_FAIR_USE = ['slower', 'stopped', 'unknown'] as const;
export const FAIR_USE_RESETS = ['24h', 'midnight', 'unknown'] as const;

/** Limit of the full speed, and the state after it. */
export interface FairUse {
  /** Bytes at full speed per `per`; null if the wholesaler does not say. */
  readonly fullSpeedBytes: number | null;
  readonly per: (typeof FAIR_USE_PERIODS)[number];
  readonly then: (typeof AFTER_FAIR_USE)[number];
  readonly kbps: number | null;
  readonly resets: (typeof FAIR_USE_RESETS)[number];
}

/**
 * The wholesaler's statements about a package beyond its allowance. Null and empty lists mean that it says nothing:
 * nothing is inferred (D57).
 */
export interface PackageTerms {
  readonly dataUnit: DataUnit;
  readonly plan: PlanKind;
  /** Maximum number of days of a package sold by the day, whose price is for one day; null if the days are fixed. */
  readonly maxDays: number | null;
  readonly fairUse: FairUse | null;
  /** Countries where the traffic reaches the internet, ISO 3166-1 alpha-2, sorted. */
  readonly exitCountries: readonly string[] | null;
  readonly maxGeneration: Generation | null;
  readonly hotspot: boolean | null;
  readonly installWithinDays: number | null;
  /** The eSIM's top-ups. `kinds` is empty if it takes none. */
  readonly topup: {
    readonly kinds: readonly TopupKind[];
    readonly behavior: TopupBehavior;
    readonly maxCount: number | null;
  };
  /** The wholesaler's words for a regional plan, such as `EU-30`. */
  readonly regionName: string | null;
  /** The wholesaler's words that distinguish network or speed variants. */
  readonly variant: string | null;
  /** The least that customers must pay, by the wholesaler's conditions. */
  readonly minRetailPrice: Money | null;
  /** The wholesaler's conditions for resellers, for the portal team only. */
  readonly saleNote: string | null;
}

/** Terms of a package about which the wholesaler says nothing. */
export const UNSTATED_TERMS: PackageTerms = {
  dataUnit: 'decimal',
  plan: 'total',
  maxDays: null,
  fairUse: null,
  exitCountries: null,
  maxGeneration: null,
  hotspot: null,
  installWithinDays: null,
  topup: { kinds: [], behavior: 'unknown', maxCount: null },
  regionName: null,
  variant: null,
  minRetailPrice: null,
  saleNote: null,
};

/** Bytes of a gigabyte and a megabyte, by unit. */
export const UNIT_BYTES: Readonly<Record<DataUnit, { readonly gb: number; readonly mb: number }>> = {
  decimal: { gb: 1e9, mb: 1e6 },
  binary: { gb: 2 ** 30, mb: 2 ** 20 },
};

/** The allowance as people say it: `3 GB`, `500 MB`, `1 GB/day`, `Unlimited`; null for packages without data. */
export function dataLabel(
  item: { readonly dataBytes: number | null; readonly unlimited: boolean },
  { dataUnit, plan }: Pick<PackageTerms, 'dataUnit' | 'plan'>,
): string | null {
  if (item.unlimited) return 'Unlimited';
  if (item.dataBytes === null) return null;
  const { gb, mb } = UNIT_BYTES[dataUnit];
  const [count, unit] = item.dataBytes >= gb ? [item.dataBytes / gb, 'GB'] : [item.dataBytes / mb, 'MB'];
  return `${Number(count.toFixed(2))} ${unit}${plan === 'daily' ? '/day' : ''}`;
}

/** A fixed order of all terms that partners see, for comparisons: jsonb does not keep the order of keys. */
export function termsAsList(terms: PackageTerms): readonly unknown[] {
  const { fairUse, topup, minRetailPrice } = terms;
  return [
    [
      terms.dataUnit,
      terms.plan,
      terms.maxDays,
      terms.exitCountries,
      terms.maxGeneration,
      terms.hotspot,
      terms.installWithinDays,
    ],
    fairUse && [fairUse.fullSpeedBytes, fairUse.per, fairUse.then, fairUse.kbps, fairUse.resets],
    [topup.kinds, topup.behavior, topup.maxCount, terms.regionName, terms.variant],
    minRetailPrice && [minRetailPrice.amount, minRetailPrice.currency],
  ];
}
