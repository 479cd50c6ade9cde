import type { Money } from '../common/money.js';
import type { Mode } from '../common/mode.js';

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

export const PACKAGE_TYPES = ['country', 'regional', 'global'] as const;
export type PackageType = (typeof PACKAGE_TYPES)[number];

export const PACKAGE_KINDS = ['base', 'topup'] as const;
export type PackageKind = (typeof PACKAGE_KINDS)[number];

export const ACTIVATION_POLICIES = ['on_install', 'on_first_use', 'on_purchase'] as const;
export type ActivationPolicy = (typeof ACTIVATION_POLICIES)[number];

/** Characters of what is shown of a package in the provider's words. */
export const SPEED_POLICY_LENGTH = 200;
export const NOTES_LENGTH = 500;

/** One visited network that a package roams on. */
export interface PackageNetwork {
  readonly country: string;
  readonly operator: string;
  readonly generations: readonly string[];
}

/** Everything a partner can be told about a package, before prices per partner are applied. */
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
  /** 1 GB = 10^9 bytes; null when unlimited or when a top-up adds days only (D10). */
  readonly dataBytes: number | null;
  readonly unlimited: boolean;
  readonly voiceMinutes: number | null;
  readonly smsCount: number | null;
  readonly validityDays: number;
  readonly activationPolicy: ActivationPolicy;
  readonly topupSupported: boolean;
  readonly networks: readonly PackageNetwork[];
  /** How and when data becomes slower, in words for people; null where nothing is known of it. */
  readonly speedPolicy: string | null;
  readonly notes: string | null;
  readonly price: Money;
  /** What it costs us, in millionths of the unit of the price's currency; null in Sandbox. */
  readonly costMicros: number | null;
  readonly retailPrice: Money | null;
  readonly available: boolean;
}

/** What a partner can choose a package by, its price apart. */
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
>;

/** Equal for packages that a partner could not tell apart. */
export function lookOf(item: PackageLook & { readonly currency: string }): string {
  return JSON.stringify([
    [item.title, item.type, item.region, item.coverage, item.kind],
    [item.dataBytes, item.unlimited, item.voiceMinutes, item.smsCount, item.validityDays],
    [item.activationPolicy, item.topupSupported, item.speedPolicy, item.notes, item.currency],
    item.networks.map(({ country, operator, generations }) => [country, operator, generations]),
  ]);
}
