import type { CatalogPackage, PackageTerms } from '../catalog/index.js';
import type { LiveProviderName } from '../config/index.js';
import type { PlacementKind } from './placement-reference.js';
import type { EsimProvider, ProviderCost, ProviderEsimRef, ProviderOrderRequest } from './esim-provider.js';

/** A plan on an eSIM. */
export interface ProviderPlan {
  /** Null if the provider does not say. */
  readonly upstreamPackageId: string | null;
  readonly status: 'active' | 'queued' | 'ended';
  /** Null for unlimited data, and if the provider does not say. */
  readonly totalBytes: number | null;
  readonly remainingBytes: number | null;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
}

/** A provider's reading of one eSIM at one time. */
export interface ProviderUsageReport {
  readonly providerEsimId: string;
  readonly status: 'issued' | 'active' | 'depleted' | 'expired' | 'suspended' | 'canceled';
  readonly profileStatus:
    'released' | 'downloaded' | 'installed' | 'enabled' | 'disabled' | 'deleted' | 'unknown';
  /** Null for unlimited plans, and if the provider does not say. */
  readonly usedBytes: number | null;
  /** Null also for an allowance per day. */
  readonly totalBytes: number | null;
  /** Whether the plan goes on after its allowance: slower, or with the next day's (D59). */
  readonly goesOn: boolean;
  /** All plans that the provider lists; null for one that shows them as a single pot. */
  readonly plans: readonly ProviderPlan[] | null;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date | null;
  /** When the provider read its counters; the time of the call if it does not say. */
  readonly asOf: Date;
}

/** An eSIM of one of our orders in its provider's records. */
export interface ProviderPurchase {
  readonly providerEsimId: string;
  /** `in_progress` may still become either of the others, or nothing. */
  readonly state: 'in_progress' | 'sold' | 'taken_back';
}

/** A purchase in a provider's records, under our reference or someone else's. */
export interface SoldPurchase {
  /** Reference of the order or top-up (`ProviderOrderRequest.reference`); several eSIMs of an order share it. */
  readonly reference: string;
  readonly providerEsimId: string;
  /** Null if the list does not say. */
  readonly upstreamPackageId: string | null;
  readonly soldAt: Date | null;
  /** `failed`: nothing was sold, and repeating the request returns the same result. */
  readonly state: ProviderPurchase['state'] | 'failed';
}

/** Lists what a provider has sold since a time, page by page, whether we know of it or not (D54). */
export interface SoldList {
  /** Kinds of purchase that the list shows under our references. It says nothing about other kinds. */
  readonly kinds: readonly PlacementKind[];
  /**
   * Starts at 0; `next` is null at the end. An entry of unexpected form counts as in progress.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  readPage(
    since: Date,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly sold: readonly SoldPurchase[]; readonly next: number | null }>;
}

/** A provider's package in our units (D10); bytes stay exact, whether based on 10^9 or 2^30. */
export interface ProviderPackage {
  readonly upstreamId: string;
  readonly kind: 'base' | 'topup';
  readonly title: string;
  /** ISO 3166-1 alpha-2, sorted. */
  readonly coverage: readonly string[];
  /** The provider's region name; null for one country. */
  readonly regionName: string | null;
  readonly dataBytes: number | null;
  readonly unlimited: boolean;
  readonly voiceMinutes: number | null;
  readonly smsCount: number | null;
  readonly validityDays: number;
  readonly activationPolicy: CatalogPackage['activationPolicy'];
  readonly topupSupported: boolean;
  readonly networks: CatalogPackage['networks'];
  readonly cost: ProviderCost;
  readonly suggestedRetail: ProviderCost | null;
  readonly available: boolean;
  /** The provider's own words about reduced speed; null when there are none. */
  readonly speedPolicy: string | null;
  /** Further remarks of the provider; null when there are none. */
  readonly notes: string | null;
  readonly terms: PackageTerms;
}

export interface PackagePage {
  readonly packages: readonly ProviderPackage[];
  /** Argument of `readPage` for the next page; null at the end of the list. */
  readonly next: number | null;
}

/** A provider's package list. Its pages are read, and fail, independently. */
export interface PackageList {
  /**
   * `everything`: packages missing from the list are no longer sold. `prices`: the list only updates packages that are
   * already known. It may be incomplete, so a missing package means nothing.
   */
  readonly says: 'everything' | 'prices';
  readonly kinds: readonly CatalogPackage['kind'][];
  readonly pageTimeoutMs: number;
  /** Starts at 0. @throws ProviderOutcomeUnknown, ProviderUnavailable */
  readPage(from: number, signal: AbortSignal): Promise<PackagePage>;
}

/** The object that a callback names. It is a hint only: the object is read again before anything changes. */
export type ProviderHint =
  | { readonly about: 'order'; readonly reference: string }
  | { readonly about: 'esim'; readonly providerEsimId: string }
  | { readonly about: 'health_check' };

/** A live provider: provisions, lists its packages and reports on eSIMs (docs/providers.md). */
export interface LiveProvider extends EsimProvider {
  readonly name: LiveProviderName;
  /** Maximum number of eSIMs per `fetchUsage`. */
  readonly usageBatchSize: number;
  /** Readings of the eSIMs that the provider knows, in any order. */
  fetchUsage(esims: readonly ProviderEsimRef[], signal: AbortSignal): Promise<readonly ProviderUsageReport[]>;
  /**
   * All purchases under the order's reference, for reconciliation. Read-only, with the priority of a poll. Ignores
   * placements after `placedBefore`.
   */
  listPurchases(
    order: ProviderOrderRequest,
    placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]>;
  /**
   * Lists everything the provider has sold; needed after a restore, when we no longer know which references to look up.
   */
  readonly soldList: SoldList;
  /** Time limit for the whole catalog: minutes instead of the seconds of one call. */
  readonly catalogTimeoutMs: number;
  /** The lists that form the catalog, base packages first. */
  listPackages(): readonly PackageList[];
  /**
   * The top-ups for eSIMs of this base package. Null for a provider that does not say; top-ups are then matched by
   * coverage.
   */
  readonly listTopupsFor:
    ((baseUpstreamId: string, signal: AbortSignal) => Promise<readonly ProviderPackage[]>) | null;
  getBalance(signal: AbortSignal): Promise<ProviderCost>;
  /** Never throws; an unreadable body gives no hint. */
  hintsOf(callbackBody: unknown): readonly ProviderHint[];
}
