import type { OfferHabits } from './offers.ts';

/** Plan counters of one eSIM in `GET /esim/{iccId}/plans`. */
export interface PlanReading {
  /** Subtracted from the plans in their order. */
  readonly usedGB?: number;
  readonly startAt?: string;
  readonly endAt?: string;
  /** Time at which the first plan's data was used up. */
  readonly usedUpAt?: string;
  readonly firstInstalledAt?: string;
  /** Overrides of each plan's fields, of any type. */
  readonly figures?: Readonly<Record<string, unknown>>;
  /** Stops listing the plans. */
  readonly gone?: boolean;
  /** Replaces the plans by an error of this status, or by a body that violates the contract. */
  readonly answer?: 400 | 404 | 500 | 'illFormed';
}

/** Confirmation of a finished purchase: `empty` has all fields without values, `absent` has none. */
export type ConfirmationShape = 'full' | 'empty' | 'absent';

/** Faults and speeds. Counters count down with every affected call. */
export interface Faults {
  /** Number of the query in which a purchase or refund ends; 0 and 1 mean the first. */
  looks: number;
  /** If set, purchases end by time instead of by queries. */
  finishAfterMs: number | null;
  /** Outcomes of the next purchases: an error code ends one as FAILED after IN_PROGRESS, null as DONE. */
  outcomes: (string | null)[];
  /** While on, every purchase ends FAILED with OUT_OF_STOCK. */
  outOfStock: boolean;
  /** Number of further purchases to accept; others are refused without a reason. Null: no limit. */
  sellsOnly: number | null;
  /** Outcome of every refund: an error code makes it FAILED. */
  refundOutcome: string | null;
  /** Number of POSTs that take effect before their connection drops. */
  dropAfterCommit: number;
  /** Number of POSTs whose connection drops before any effect. */
  dropBeforeCommit: number;
  /** Number of queries in which a new purchase returns 404. */
  readLagLooks: number;
  /** Milliseconds in which a new purchase returns 404. */
  readLagMs: number;
  /** Number of calls that return 503 SYSTEM_UNAVAILABLE without any effect. */
  unavailable: number;
  /** Number of POSTs that take effect but return 503. */
  unavailableAfterCommit: number;
  /** Number of calls that return 429 without any effect. */
  busy: number;
  /** Further calls within a second return 429; null: no limit. */
  maxPerSecond: number | null;
  /** Format of the activation code. */
  activationCode: 'bare' | 'lpa' | 'short' | 'none';
  smdpScheme: boolean;
  iccids: 'fresh' | 'reused' | 'nonLuhn';
  /** Refuses known transaction ids without naming a field. */
  vagueDuplicates: boolean;
  /** Response of the next `badAnswers` calls. */
  badAnswer: 'html' | 'truncated' | 'huge' | 'empty' | 'wrongShape';
  badAnswers: number;
  /** Whether a call with a bad response takes effect. */
  badAnswersTakeEffect: boolean;
  /** Delay between a call's effect and its response. */
  slowMs: number;
  plans: Record<string, PlanReading>;
  /**
   * The event that starts a queued plan. The documentation has the statuses ACTIVE and QUEUED, and the optional times `startAt`
   * and `endAt` (`DtoESIMPlan` of the official SDK), but does not say when a queued plan starts. Hence both
   * possibilities, and `never`:
   *
   * - `end`: the plan before it reaches its `endAt`. An assumption, taken from `endAt`.
   * - `exhaustion`: the data of the plan before it is used up, or its `endAt` comes. An assumption; other wholesalers
   *   and shops do so.
   */
  queuedPlansStart: 'never' | 'end' | 'exhaustion';
  offerList: OfferHabits;
  /** Maximum page size, whatever `_limit` says. */
  maxPageSize: number;
  /** Whether a purchase shows its own refund; the refund endpoint works either way. */
  refundInPurchase: boolean;
  /** Status for a refund that does not exist. */
  noRefundStatus: 400 | 404 | 500;
  /** Status for the plans of an unknown ICCID. */
  unknownIccidStatus: 400 | 404 | 500;
  /** Status for buying an unknown or disabled offer. */
  unknownOfferStatus: 400 | 404;
  /** Confirmation of a plan added to an existing eSIM. */
  topupConfirmation: ConfirmationShape;
  /** Stops listing plans that have ended or whose data is used up. */
  endedPlansLeave: boolean;
  /** Sends error codes as numbers. */
  numericCodes: boolean;
  /** Additional cost of new purchases beyond their offer, as `costFee`, in the smallest unit. */
  purchaseFee: number;
  /** `cost` excludes the fee, which only `costFee` shows; no document says which of the two is right. */
  feeBesideCost: boolean;
  webhookUrl: string | null;
  webhookHeader: { name: string; value: string } | null;
  webhookDelayMs: number;
  /** Number of copies sent of every webhook. */
  webhookCopies: number;
  /** A body with an earlier status follows the final one. */
  webhookDisordered: boolean;
}

/** No faults: every purchase is DONE at the first query. */
export function noFaults(): Faults {
  return {
    looks: 1,
    finishAfterMs: null,
    outcomes: [],
    outOfStock: false,
    sellsOnly: null,
    refundOutcome: null,
    dropAfterCommit: 0,
    dropBeforeCommit: 0,
    readLagLooks: 0,
    readLagMs: 0,
    unavailable: 0,
    unavailableAfterCommit: 0,
    busy: 0,
    maxPerSecond: null,
    activationCode: 'bare',
    smdpScheme: false,
    iccids: 'fresh',
    vagueDuplicates: false,
    badAnswer: 'html',
    badAnswers: 0,
    badAnswersTakeEffect: true,
    slowMs: 0,
    plans: {},
    queuedPlansStart: 'never',
    offerList: { instead: null, brokenPages: {} },
    maxPageSize: 1_024,
    refundInPurchase: true,
    noRefundStatus: 404,
    unknownIccidStatus: 404,
    unknownOfferStatus: 404,
    topupConfirmation: 'full',
    endedPlansLeave: false,
    numericCodes: false,
    purchaseFee: 0,
    feeBesideCost: false,
    webhookUrl: null,
    webhookHeader: null,
    webhookDelayMs: 0,
    webhookCopies: 1,
    webhookDisordered: false,
  };
}

/** The body of `POST /__control`: any fault switches, changes of offers, and the balance. */
export interface ControlBody extends Partial<Faults> {
  readonly offers?: Record<string, { readonly enabled?: boolean; readonly costFixed?: number }>;
  /** In cents. */
  readonly balance?: number;
  /** Resets every switch first. */
  readonly reset?: boolean;
}

/** Counts a fault down. @returns whether it applies now */
export function strikes(
  faults: Faults,
  counter:
    'dropAfterCommit' | 'dropBeforeCommit' | 'busy' | 'unavailable' | 'unavailableAfterCommit' | 'badAnswers',
): boolean {
  if (faults[counter] <= 0) return false;
  faults[counter] -= 1;
  return true;
}
