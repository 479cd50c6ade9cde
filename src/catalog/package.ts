import type { Money } from '../common/money.js';
import type { Mode } from '../common/mode.js';
import { type PackageTerms, termsAsList } from './package-terms.js';

export const REGIONS = [
  'africa',
  'asia',
  'balkans',
  'caribbean',
  'europe',
  'latin-america',
  'middle-east',
  'north-america',
  'oceania',
] as const;
export type Region = (typeof REGIONS)[number];

/** English names of our regions. */
export const REGION_TITLES: Readonly<Record<Region, string>> = {
  africa: 'Africa',
  asia: 'Asia',
  balkans: 'Balkans',
  caribbean: 'Caribbean',
  europe: 'Europe',
  'latin-america': 'Latin America',
  'middle-east': 'Middle East',
  'north-america': 'North America',
  oceania: 'Oceania',
};

export const PACKAGE_TYPES = ['country', 'regional', 'global'] as const;
export type PackageType = (typeof PACKAGE_TYPES)[number];

export const PACKAGE_KINDS = ['base', 'topup'] as const;
export type PackageKind = (typeof PACKAGE_KINDS)[number];

export const ACTIVATION_POLICIES = ['on_install', 'on_first_use', 'on_purchase'] as const;
export type ActivationPolicy = (typeof ACTIVATION_POLICIES)[number];

/** Maximum length of the provider's texts that are shown. */
export const SPEED_POLICY_LENGTH = 200;
export const NOTES_LENGTH = 500;
export const NAME_LENGTH = 100;
export const SALE_NOTE_LENGTH = 1_000;

/** A visited network on which a package roams. */
export interface PackageNetwork {
  readonly country: string;
  readonly operator: string;
  readonly generations: readonly string[];
}

/** A package's public fields, before partner prices are applied. */
export interface CatalogPackage {
  readonly id: string;
  readonly mode: Mode;
  readonly title: string;
  readonly type: PackageType;
  /** Set for `regional` packages only. */
  readonly region: Region | null;
  /** ISO 3166-1 alpha-2, sorted. */
  readonly coverage: readonly string[];
  readonly kind: PackageKind;
  /** Exact bytes, whatever the unit (`terms.dataUnit`); null when unlimited or when a top-up adds days only (D10). */
  readonly dataBytes: number | null;
  readonly unlimited: boolean;
  readonly voiceMinutes: number | null;
  readonly smsCount: number | null;
  readonly validityDays: number;
  readonly activationPolicy: ActivationPolicy;
  readonly topupSupported: boolean;
  readonly networks: readonly PackageNetwork[];
  /** How and when speed is reduced, as text for people; null when unknown. */
  readonly speedPolicy: string | null;
  readonly notes: string | null;
  readonly terms: PackageTerms;
  readonly price: Money;
  /** Our cost in micros of the price's currency; null in Sandbox. */
  readonly costMicros: number | null;
  readonly retailPrice: Money | null;
  readonly available: boolean;
}

/** The fields by which a partner can choose a package, except its price. */
export type PackageLook = Pick<
  CatalogPackage,
  | 'title'
  | 'type'
  | 'region'
  | 'coverage'
  | 'kind'
  | 'dataBytes'
  | 'unlimited'
  | 'voiceMinutes'
  | 'smsCount'
  | 'validityDays'
  | 'activationPolicy'
  | 'topupSupported'
  | 'networks'
  | 'speedPolicy'
  | 'notes'
  | 'terms'
>;

/** Equal for packages that a partner could not distinguish. */
export function lookOf(item: PackageLook & { readonly currency: string }): string {
  return JSON.stringify([
    [item.title, item.type, item.region, item.coverage, item.kind],
    [item.dataBytes, item.unlimited, item.voiceMinutes, item.smsCount, item.validityDays],
    [item.activationPolicy, item.topupSupported, item.speedPolicy, item.notes, item.currency],
    termsAsList(item.terms),
    item.networks.map(({ country, operator, generations }) => [country, operator, generations]),
  ]);
}
