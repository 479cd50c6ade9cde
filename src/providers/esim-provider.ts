import type { CatalogPackage } from '../catalog/index.js';
import type { MicroMoney } from '../common/money.js';

/** A profile that a provider has provisioned. Everything but the ICCID is a secret (D25). */
export interface ProviderProfile {
  readonly providerEsimId: string;
  /** 18 to 20 digits as text; never rejected for its check digit (D23). */
  readonly iccid: string;
  readonly smdpAddress: string;
  readonly matchingId: string;
  readonly confirmationCode: string | null;
  readonly apn: string | null;
}

/** Why a provider did not give what was asked (D22, `code` in `failure`). */
export const FAILURE_CODES = [
  'insufficient_balance',
  'package_unavailable',
  'price_changed',
  'esim_expired',
  'topup_not_supported',
  'provider_rejected',
  'provider_unavailable',
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

export interface ProviderFailure {
  readonly code: FailureCode;
  readonly reason: string;
}

/** The provider's word on an order. Only `rejected` makes an order fail (D22). */
export type ProviderOrderState =
  | { readonly state: 'in_progress'; readonly checkAfterMs: number }
  | {
      readonly state: 'provisioned';
      readonly profiles: readonly ProviderProfile[];
      /** Set when fewer profiles than asked were provisioned. */
      readonly shortfall: ProviderFailure | null;
      /** What the provider charged for one, if that was more than the cost of the order: its list has moved. */
      readonly actualCost?: ProviderCost | null;
    }
  | { readonly state: 'rejected'; readonly failure: ProviderFailure };

/** What a provider certainly has of an order, complete or not. Nothing at all: it does not know the order. */
export interface ProviderOrderParts {
  readonly profiles: readonly ProviderProfile[];
  /** eSIMs that may still become profiles: while there are any, nobody may end the order by hand. */
  readonly running: number;
  /** eSIMs that are sold, but not described in a form that can be issued. */
  readonly unusable: number;
  /** Why there is no profile of an eSIM, where the provider says so. */
  readonly failure: ProviderFailure | null;
}

export type ProviderCancelState =
  | { readonly state: 'canceled' }
  | { readonly state: 'refused'; readonly failure: ProviderFailure }
  /** Some eSIMs of the order were taken back, the others not; the failure says why. */
  | {
      readonly state: 'partly_canceled';
      readonly canceledEsimIds: readonly string[];
      readonly failure: ProviderFailure;
    };

/** The provider's word on a top-up. Only `rejected` makes a top-up fail. */
export type ProviderTopupState =
  | { readonly state: 'in_progress'; readonly checkAfterMs: number }
  | {
      readonly state: 'completed';
      /** What the provider says that the eSIM has now; null where it does not say. */
      readonly totalBytes: number | null;
      readonly expiresAt: Date | null;
      /** As for an order. */
      readonly actualCost?: ProviderCost | null;
    }
  | { readonly state: 'rejected'; readonly failure: ProviderFailure };

/** What a provider charges for one. */
export type ProviderCost = MicroMoney;

export interface ProviderOrderRequest {
  /** Fixed in the order's row; every call, retry and recovery of the order uses it (D19). */
  readonly reference: string;
  /** Our catalogue id, which the sandbox simulator knows. */
  readonly packageId: CatalogPackage['id'];
  /** The provider's name of the package, as it was when the order was accepted. */
  readonly upstreamPackageId: string;
  readonly quantity: number;
  /** What one cost at the provider when the order was accepted; null when nobody charges for it. */
  readonly unitCost: ProviderCost | null;
  readonly acceptedAt: Date;
}

/** An eSIM as its provider names it. */
export interface ProviderEsimRef {
  readonly providerEsimId: string;
  readonly iccid: string;
  readonly issuedAt: Date;
  /** Set by who reads it again and again, for a provider that no longer shows what has ended. */
  readonly known?: KnownEsim;
}

/** What earlier readings and top-ups have left on record of an eSIM. */
export interface KnownEsim {
  /** When it came into use; null as long as nobody saw any. */
  readonly activatedAt: Date | null;
  /** When its validity ends; null before that begins. */
  readonly expiresAt: Date | null;
  readonly toppedUpAt: Date | null;
  readonly usedBytes: number;
  /** Null for unlimited data. */
  readonly totalBytes: number | null;
  /** When it was last looked at, if that look gave no reading; null when it gave one, and before the first. */
  readonly lookedInVainAt: Date | null;
}

export interface ProviderCancelRequest {
  readonly reference: string;
  readonly quantity: number;
  readonly esims: readonly ProviderEsimRef[];
}

/** What has become of an eSIM of an order that is to be taken back. `unknown`: the provider does not say. */
export interface ProviderCancelStatus {
  readonly providerEsimId: string;
  readonly cancelStatus: 'unused' | 'in_use' | 'being_canceled' | 'canceled' | 'unknown';
}

export interface ProviderTopupRequest {
  /** Fixed in the top-up's row (D19). */
  readonly reference: string;
  readonly esim: ProviderEsimRef;
  readonly packageId: CatalogPackage['id'];
  readonly upstreamPackageId: string;
  readonly unitCost: ProviderCost | null;
  readonly acceptedAt: Date;
  /** What our books have of the eSIM besides this top-up; read only where the provider's answer leaves a doubt. */
  readonly otherPurchases: () => Promise<EsimPurchases>;
}

/** Everything that was bought for one eSIM, but for one top-up, as our own books have it. */
export interface EsimPurchases {
  /** The order's `reference`. */
  readonly orderReference: string;
  readonly basePackageId: string;
  /** Bytes of the base package; null when it is unlimited or not known any more. */
  readonly baseBytes: number | null;
  /** Top-ups that are certainly applied. */
  readonly topups: readonly EsimTopup[];
  /** How many other top-ups have left and were not completed: the eSIM may have them. */
  readonly doubtful: number;
}

export interface EsimTopup {
  readonly reference: string;
  /** The provider's name of the package. */
  readonly upstreamPackageId: string;
  /** Null when it adds days only. */
  readonly dataBytes: number | null;
}

/**
 * `first`: nothing has ever left for this reference. `again`: something may have; look-ups found nothing for longer
 * than `readLagMs`, so what is missing may be placed, and whatever turns out to be known is followed instead.
 */
export type Placement = 'first' | 'again';

/** The call left, and whether it took effect is not known: ask by reference before anything else. */
export class ProviderOutcomeUnknown extends Error {
  constructor(cause?: unknown) {
    super('the upstream did not answer', { cause });
    this.name = 'ProviderOutcomeUnknown';
  }
}

/** The call certainly had no effect: refused as busy, the circuit open, no connection. Try later. */
export class ProviderUnavailable extends Error {
  constructor(
    readonly retryAfterMs: number,
    cause?: unknown,
  ) {
    super('the upstream does not take calls now', { cause });
    this.name = 'ProviderUnavailable';
  }
}

/** What buys, tops up or takes back. */
export type PlacementOperation = 'order' | 'topup' | 'cancel';

/**
 * What a provider's documentation says of a second call under the same name: it is the same request, or it does not
 * say. Where it does not say, at most one repetition leaves, and support hears of it (`PlacementGuard`).
 */
export interface RepeatPolicy {
  readonly repeat: 'same_request' | 'undocumented';
  /** Where the provider says so, or where one would expect it and finds nothing. */
  readonly source: string;
}

/**
 * The port: a provider that provisions. `live-provider.ts` adds what a real one is asked besides. Every call takes a reference that was fixed before, and may be repeated after a crash.
 * Every method @throws ProviderOutcomeUnknown, ProviderUnavailable
 */
export interface EsimProvider {
  readonly name: string;
  /** How long one call may take before its outcome counts as unknown. */
  readonly timeoutMs: number;
  /** For how long after a placement the provider may still deny knowing it (read lag). */
  readonly readLagMs: number;
  /** What it says of repeated placements, each with its source. */
  readonly repeats: Readonly<Record<PlacementOperation, RepeatPolicy>>;
  placeOrder(
    request: ProviderOrderRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState>;
  /**
   * Only asks. Null when the provider does not know the reference, or not all parts of it; also when it has too much
   * to look through, provided that placing again is certainly the same request.
   */
  findOrder(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState | null>;
  /** Only asks, for support: all that there is of the order now. What cannot be looked through is an outcome unknown. */
  findParts(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderParts>;
  cancelOrder(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState>;
  /** Only asks, for support: one status for each eSIM of the request, in its order. */
  findCancelStatuses(
    request: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<readonly ProviderCancelStatus[]>;
  placeTopup(
    request: ProviderTopupRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderTopupState>;
  /** Only asks; as a `poll` it gives way to everything else (pace). Null when it certainly is not applied. */
  findTopup(
    request: ProviderTopupRequest,
    signal: AbortSignal,
    purpose?: 'topup' | 'poll',
  ): Promise<ProviderTopupState | null>;
}

/** What one cost at the provider at acceptance, as an order or a top-up keeps it; null when nobody charges for it. */
export function unitCostOf(sold: {
  readonly unitCostMicros: number | null;
  readonly unitCostCurrency: string | null;
}): ProviderCost | null {
  const { unitCostMicros: micros, unitCostCurrency: currency } = sold;
  return micros === null || currency === null ? null : { micros, currency };
}
