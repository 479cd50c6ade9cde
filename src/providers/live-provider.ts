import type { CatalogPackage } from '../catalog/index.js';
import type { PlacementKind } from './placement-reference.js';
import type { EsimProvider, ProviderCost, ProviderEsimRef, ProviderOrderRequest } from './esim-provider.js';

/** What a provider says of one eSIM at one time. */
export interface ProviderUsageReport {
  readonly providerEsimId: string;
  readonly status: 'issued' | 'active' | 'depleted' | 'expired' | 'suspended' | 'canceled';
  readonly profileStatus:
    'released' | 'downloaded' | 'installed' | 'enabled' | 'disabled' | 'deleted' | 'unknown';
  /** Null where the provider does not say, or for unlimited plans. */
  readonly usedBytes: number | null;
  readonly totalBytes: number | null;
  readonly activatedAt: Date | null;
  readonly expiresAt: Date | null;
  /** When the provider read its counters; the time of the call where it does not say. */
  readonly asOf: Date;
}

/** An eSIM of one of our orders, as its provider's own books have it. */
export interface ProviderPurchase {
  readonly providerEsimId: string;
  /** `in_progress` may still become any of the others, or nothing. */
  readonly state: 'in_progress' | 'sold' | 'taken_back';
}

/** Something that a provider's own books have under a name, ours or a stranger's. */
export interface SoldPurchase {
  /** As the order or top-up was named (`ProviderOrderRequest.reference`); several eSIMs of an order share it. */
  readonly reference: string;
  readonly providerEsimId: string;
  /** Null where the list does not say. */
  readonly upstreamPackageId: string | null;
  readonly soldAt: Date | null;
  /** `failed`: nothing was sold, and asking for it again leads to that answer. */
  readonly state: ProviderPurchase['state'] | 'failed';
}

/** What a provider sold since a time, page by page, whether we know of it or not (D54). */
export interface SoldList {
  /** What the list shows under our references; of anything else nobody can tell whether it was bought. */
  readonly kinds: readonly PlacementKind[];
  /**
   * Begins at 0; `next` is null at the end. What is of a form that nobody expects counts as in progress.
   * @throws ProviderOutcomeUnknown, ProviderUnavailable
   */
  readPage(
    since: Date,
    from: number,
    signal: AbortSignal,
  ): Promise<{ readonly sold: readonly SoldPurchase[]; readonly next: number | null }>;
}

/** A package as a provider lists it, in our units (D10): bytes of 10^9 or 2^30 are passed on exactly. */
export interface ProviderPackage {
  readonly upstreamId: string;
  readonly kind: 'base' | 'topup';
  readonly title: string;
  /** ISO 3166-1 alpha-2, sorted. */
  readonly coverage: readonly string[];
  /** The provider's own region name; null for one country. */
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
  /** What the provider says of slower data, in its own words; null where it says nothing. */
  readonly speedPolicy: string | null;
  /** What else it says of the package; null where it says nothing. */
  readonly notes: string | null;
}

/** A part of a provider's list. */
export interface PackagePage {
  readonly packages: readonly ProviderPackage[];
  /** What `readPage` takes for the page behind this one; null at the end of the list. */
  readonly next: number | null;
}

/** A list that a provider gives, page by page: each is asked for, and failed, apart from the others. */
export interface PackageList {
  /**
   * `everything`: what is not in it is not sold any more. `prices`: only what is known of these packages already is
   * brought up to date; it may lack anything, and nothing is concluded from that.
   */
  readonly says: 'everything' | 'prices';
  readonly kinds: readonly CatalogPackage['kind'][];
  /** How long one page may take. */
  readonly pageTimeoutMs: number;
  /** Begins at 0. @throws ProviderOutcomeUnknown, ProviderUnavailable */
  readPage(from: number, signal: AbortSignal): Promise<PackagePage>;
}

/** What a callback is about. It is a hint only: the object is asked for again before anything changes. */
export type ProviderHint =
  | { readonly about: 'order'; readonly reference: string }
  | { readonly about: 'esim'; readonly providerEsimId: string }
  | { readonly about: 'health_check' };

/** A live provider: provisions, lists what it sells, and can be asked about eSIMs (docs/providers.md). */
export interface LiveProvider extends EsimProvider {
  /** eSIMs that one `fetchUsage` takes. */
  readonly usageBatchSize: number;
  /** Readings of those that the provider knows, in any order. */
  fetchUsage(esims: readonly ProviderEsimRef[], signal: AbortSignal): Promise<readonly ProviderUsageReport[]>;
  /**
   * All that the provider has sold under the order's reference, for reconciliation. Only asks, as a poll. Nothing
   * that was placed after `placedBefore` is looked for.
   */
  listPurchases(
    order: ProviderOrderRequest,
    placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]>;
  /** For after a restore: all that it sold, without knowing what to ask for. */
  readonly soldList: SoldList;
  /** How long its whole catalogue may take, which is minutes where one call has seconds. */
  readonly catalogTimeoutMs: number;
  /** The lists that make its catalogue, the packages that orders are made of first. */
  listPackages(): readonly PackageList[];
  /**
   * The top-ups that eSIMs of this base package take; null for a provider that does not say and matches by coverage.
   */
  readonly listTopupsFor:
    ((baseUpstreamId: string, signal: AbortSignal) => Promise<readonly ProviderPackage[]>) | null;
  getBalance(signal: AbortSignal): Promise<ProviderCost>;
  /** Never throws; what cannot be understood gives no hint. */
  hintsOf(callbackBody: unknown): readonly ProviderHint[];
}
