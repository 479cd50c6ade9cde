import type { CatalogPackage } from '../catalog/index.js';
import type { MicroMoney } from '../common/money.js';

/** A provisioned eSIM profile. Everything but the ICCID is a secret (D25). */
export interface ProviderProfile {
  readonly providerEsimId: string;
  /** 18 to 20 digits as text; never rejected for its check digit (D23). */
  readonly iccid: string;
  readonly smdpAddress: string;
  readonly matchingId: string;
  readonly confirmationCode: string | null;
  /** With all parts that the provider gave it; null if it gave only the parts above (SGP.22 section 4.1). */
  readonly activationCode: string | null;
  readonly pin: string | null;
  readonly puk: string | null;
  readonly apn: string | null;
  /** Phone number; null if the provider states none. */
  readonly msisdn: string | null;
  /** Whether the provider shows all plans of the eSIM as one. Otherwise its readings list them. */
  readonly pooled: boolean;
  /** The installation deadline; null if the provider states none. */
  readonly installBy: Date | null;
}

/** Why a provider did not provision (D22, `code` in `failure`). */
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

/** An order's state at the provider. Only `rejected` fails an order (D22). */
export type ProviderOrderState =
  | { readonly state: 'in_progress'; readonly checkAfterMs: number }
  | {
      readonly state: 'provisioned';
      readonly profiles: readonly ProviderProfile[];
      /** Set when the provider provisioned fewer profiles than requested. */
      readonly shortfall: ProviderFailure | null;
      /** The provider's charge for one unit, if it exceeds the order's cost because the price list has changed. */
      readonly actualCost?: ProviderCost | null;
    }
  | { readonly state: 'rejected'; readonly failure: ProviderFailure };

/** The parts of an order that a provider certainly has. All empty: it does not know the order. */
export interface ProviderOrderParts {
  readonly profiles: readonly ProviderProfile[];
  /** eSIMs that may still become profiles. While any remain, nobody may end the order by hand. */
  readonly running: number;
  /** eSIMs that were sold, but whose profile data is unusable. */
  readonly unusable: number;
  /** Why an eSIM has no profile, if the provider says so. */
  readonly failure: ProviderFailure | null;
}

export type ProviderCancelState =
  | { readonly state: 'canceled' }
  | { readonly state: 'refused'; readonly failure: ProviderFailure }
  /** Some of the order's eSIMs were canceled and others not; the failure says why. */
  | {
      readonly state: 'partly_canceled';
      readonly canceledEsimIds: readonly string[];
      readonly failure: ProviderFailure;
    };

/** A top-up's state at the provider. Only `rejected` fails a top-up. */
export type ProviderTopupState =
  | { readonly state: 'in_progress'; readonly checkAfterMs: number }
  | {
      readonly state: 'completed';
      /** The eSIM's current total as the provider reports it; null if it reports none. */
      readonly totalBytes: number | null;
      readonly expiresAt: Date | null;
      /** The plan waits behind the one in use. Set by the Sandbox; a live provider shows it in its readings. */
      readonly queues?: boolean;
      /** Same meaning as for an order. */
      readonly actualCost?: ProviderCost | null;
    }
  | { readonly state: 'rejected'; readonly failure: ProviderFailure };

/** A provider's charge for one unit. */
export type ProviderCost = MicroMoney;

export interface ProviderOrderRequest {
  /** Fixed in the order's row; every call, retry and recovery of the order uses it (D19). */
  readonly reference: string;
  /** Our catalog id, which the sandbox simulator knows. */
  readonly packageId: CatalogPackage['id'];
  /** The provider's package id when the order was accepted. */
  readonly upstreamPackageId: string;
  readonly quantity: number;
  /** Number of days of each eSIM of a package sold by the day; null for fixed days. */
  readonly days: number | null;
  /** Unit cost at the provider when the order was accepted; null if nothing is charged. */
  readonly unitCost: ProviderCost | null;
  readonly acceptedAt: Date;
}

/** An eSIM under its provider's id. */
export interface ProviderEsimRef {
  readonly providerEsimId: string;
  readonly iccid: string;
  readonly issuedAt: Date;
  /** Set by repeated polls, for a provider that stops listing plans that have ended. */
  readonly known?: KnownEsim;
}

/** Our record of an eSIM from earlier readings and top-ups. */
export interface KnownEsim {
  /** Start of use; null while no reading has shown any. */
  readonly activatedAt: Date | null;
  /** End of validity; null before validity begins. */
  readonly expiresAt: Date | null;
  readonly toppedUpAt: Date | null;
  readonly usedBytes: number;
  /** Null for unlimited data. */
  readonly totalBytes: number | null;
  /** Time of the last poll if it returned no reading; null when it returned one, and before the first poll. */
  readonly lookedInVainAt: Date | null;
}

export interface ProviderCancelRequest {
  readonly reference: string;
  readonly quantity: number;
  readonly esims: readonly ProviderEsimRef[];
}

/** A change of one eSIM, sent at most once per request of a partner. */
export interface EsimControl {
  readonly action: 'suspend' | 'resume' | 'revoke';
  readonly esim: ProviderEsimRef;
  /** Reference of the eSIM's order. */
  readonly reference: string;
}

export type EsimControlResult =
  { readonly state: 'done' } | { readonly state: 'refused'; readonly failure: ProviderFailure };

/** State of one eSIM of an order that is being canceled. `unknown`: the provider does not say. */
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
  /** Number of days to add with a package sold by the day; null for fixed days. */
  readonly days: number | null;
  readonly unitCost: ProviderCost | null;
  readonly acceptedAt: Date;
  /** Our records of the eSIM's other purchases; read only when the provider's response is inconclusive. */
  readonly otherPurchases: () => Promise<EsimPurchases>;
}

/** All purchases for one eSIM except one top-up, from our own records. */
export interface EsimPurchases {
  /** The order's `reference`. */
  readonly orderReference: string;
  readonly basePackageId: string;
  /** Bytes of the base package; null when it is unlimited or no longer known. */
  readonly baseBytes: number | null;
  /** Top-ups that are certainly applied. */
  readonly topups: readonly EsimTopup[];
  /** Number of other top-ups that were sent and did not complete: the eSIM may have them. */
  readonly doubtful: number;
}

export interface EsimTopup {
  readonly reference: string;
  /** The provider's package id. */
  readonly upstreamPackageId: string;
  /** Null when it adds days only. */
  readonly dataBytes: number | null;
}

/**
 * `first`: no placement was ever sent for this reference. `again`: one may have been sent, but lookups have found
 * nothing for longer than `readLagMs`. Missing parts may then be placed; parts that turn out to exist are tracked.
 */
export type Placement = 'first' | 'again';

/** The call was sent, and its effect is unknown: look it up by reference before anything else. */
export class ProviderOutcomeUnknown extends Error {
  constructor(cause?: unknown) {
    super('the provider did not respond', { cause });
    this.name = 'ProviderOutcomeUnknown';
  }
}

/** The call certainly had no effect: refused as busy, circuit open, or no connection. Retry later. */
export class ProviderUnavailable extends Error {
  constructor(
    readonly retryAfterMs: number,
    cause?: unknown,
  ) {
    super('the provider is temporarily unavailable', { cause });
    this.name = 'ProviderUnavailable';
  }
}

/** Operations that buy, top up or cancel. */
export type PlacementOperation = 'order' | 'topup' | 'cancel';

/**
 * How a provider's documentation treats a second call with the same reference: as the same request, or not at all. If
 * it is undocumented, at most one repeated call is sent, and support is alerted (`PlacementGuard`). `never`: our own
 * record of the call keeps us from repeating it.
 */
export interface RepeatPolicy {
  readonly repeat: 'same_request' | 'undocumented' | 'never';
  /** The document that says so, or the place where one would expect it. */
  readonly source: string;
}

/**
 * The provisioning port. `live-provider.ts` adds what only real providers offer. Every call takes a reference that was
 * fixed in advance, and may be repeated after a crash.
 * Every method @throws ProviderOutcomeUnknown, ProviderUnavailable
 */
export interface EsimProvider {
  readonly name: string;
  /** Time limit of one call, after which its outcome counts as unknown. */
  readonly timeoutMs: number;
  /** How long after a placement the provider may not show it yet (read lag). */
  readonly readLagMs: number;
  /** Its documented treatment of repeated placements, each with its source. */
  readonly repeats: Readonly<Record<PlacementOperation, RepeatPolicy>>;
  placeOrder(
    request: ProviderOrderRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState>;
  /**
   * Read-only. Null when the provider does not know the reference, or not all parts of it. Also null when there is too
   * much to search, if placing again is certainly the same request.
   */
  findOrder(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState | null>;
  /** Read-only, for support: the order's current parts. Throws ProviderOutcomeUnknown when they cannot be searched. */
  findParts(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderParts>;
  cancelOrder(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState>;
  /** Read-only, for support: one status per eSIM of the request, in the request's order. */
  findCancelStatuses(
    request: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<readonly ProviderCancelStatus[]>;
  /**
   * Suspends, resumes or revokes an eSIM; null if the provider offers none of these (`actionsOfferedBy`). The next
   * reading shows the effect.
   */
  readonly controlEsim: ((control: EsimControl, signal: AbortSignal) => Promise<EsimControlResult>) | null;
  placeTopup(
    request: ProviderTopupRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderTopupState>;
  /**
   * Read-only; as a `poll` it yields to all other calls at the rate limiter. Null when the top-up is certainly not
   * applied.
   */
  findTopup(
    request: ProviderTopupRequest,
    signal: AbortSignal,
    purpose?: 'topup' | 'poll',
  ): Promise<ProviderTopupState | null>;
}

/** Unit cost at the provider, as stored with an order or top-up at acceptance; null if nothing is charged. */
export function unitCostOf(sold: {
  readonly unitCostMicros: number | null;
  readonly unitCostCurrency: string | null;
}): ProviderCost | null {
  const { unitCostMicros: micros, unitCostCurrency: currency } = sold;
  return micros === null || currency === null ? null : { micros, currency };
}
