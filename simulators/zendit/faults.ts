import type { OfferHabits } from './offers.ts';

/** Plan counters of one eSIM, as `GET /esim/{iccId}/plans` shows them. */
export interface PlanReading {
  /** Taken from the plans in their order. */
  readonly usedGB?: number;
  readonly startAt?: string;
  readonly endAt?: string;
  readonly firstInstalledAt?: string;
  /** Fields of each plan that are shown otherwise, of any type. */
  readonly figures?: Readonly<Record<string, unknown>>;
  /** The plans are no longer listed. */
  readonly gone?: boolean;
  /** Instead of the plans: an error of this status, or a body that is no contract's. */
  readonly answer?: 400 | 404 | 500 | 'illFormed';
}

/** The confirmation of a finished purchase: `empty` has all fields without a value, `absent` none. */
export type ConfirmationShape = 'full' | 'empty' | 'absent';

/** What goes wrong, and how fast things go. Counters count down with every call they touch. */
export interface Faults {
  /** The look on which a purchase or refund has ended; 0 and 1: the first. */
  looks: number;
  /** With a number, time moves purchases and not looks. */
  finishAfterMs: number | null;
  /** The ends of the next purchases: an error code makes one FAILED after IN_PROGRESS, null lets it be DONE. */
  outcomes: (string | null)[];
  /** While on, every purchase ends FAILED with OUT_OF_STOCK. */
  outOfStock: boolean;
  /** So many purchases are still taken; the others are refused without saying why. Null: no limit. */
  sellsOnly: number | null;
  /** The end of every refund: an error code makes it FAILED. */
  refundOutcome: string | null;
  /** The next POSTs commit, and the connection drops instead of an answer. */
  dropAfterCommit: number;
  /** The connection of the next POSTs drops before anything happened. */
  dropBeforeCommit: number;
  /** New purchases answer 404 to so many looks. */
  readLagLooks: number;
  /** New purchases answer 404 for so long. */
  readLagMs: number;
  /** The next calls answer 503 SYSTEM_UNAVAILABLE and do nothing. */
  unavailable: number;
  /** The next POSTs commit and answer 503 all the same. */
  unavailableAfterCommit: number;
  /** The next calls answer 429 and do nothing. */
  busy: number;
  /** More calls than this within a second answer 429; null: no limit. */
  maxPerSecond: number | null;
  /** The shape of the activation code. */
  activationCode: 'bare' | 'lpa' | 'short' | 'none';
  smdpScheme: boolean;
  iccids: 'fresh' | 'reused' | 'nonLuhn';
  /** Known transaction ids are refused without naming a field. */
  vagueDuplicates: boolean;
  /** What the next `badAnswers` calls say. */
  badAnswer: 'html' | 'truncated' | 'huge' | 'empty' | 'wrongShape';
  badAnswers: number;
  /** Whether a call with a bad answer takes effect. */
  badAnswersTakeEffect: boolean;
  /** Calls wait so long before they answer, after they took effect. */
  slowMs: number;
  plans: Record<string, PlanReading>;
  offerList: OfferHabits;
  /** Lists give no more than this, whatever `_limit` asks for. */
  maxPageSize: number;
  /** Whether a purchase with a refund says so itself; the refund can be asked for either way. */
  refundInPurchase: boolean;
  /** What asking for a refund that there is not is answered with. */
  noRefundStatus: 400 | 404 | 500;
  /** What asking for the plans of an unknown ICCID is answered with. */
  unknownIccidStatus: 400 | 404 | 500;
  /** What buying an offer that is unknown or disabled is answered with. */
  unknownOfferStatus: 400 | 404;
  /** The confirmation of a plan that was put on an existing eSIM. */
  topupConfirmation: ConfirmationShape;
  /** Plans that ended, or whose data are used up, are no longer listed. */
  endedPlansLeave: boolean;
  /** Codes of errors are numbers. */
  numericCodes: boolean;
  /** New purchases cost so much more than their offer says, as `costFee`, in its smallest unit. */
  purchaseFee: number;
  /** `cost` leaves the fee out, which `costFee` then says alone; no document tells which of the two it is. */
  feeBesideCost: boolean;
  webhookUrl: string | null;
  webhookHeader: { name: string; value: string } | null;
  webhookDelayMs: number;
  /** How often every webhook is sent. */
  webhookCopies: number;
  /** A body of an earlier status follows the final one. */
  webhookDisordered: boolean;
}

/** No faults: every purchase is DONE on the first look. */
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
  /** Puts every switch back first. */
  readonly reset?: boolean;
}

/** Counts a fault down. @returns whether it strikes now. */
export function strikes(
  faults: Faults,
  counter:
    'dropAfterCommit' | 'dropBeforeCommit' | 'busy' | 'unavailable' | 'unavailableAfterCommit' | 'badAnswers',
): boolean {
  if (faults[counter] <= 0) return false;
  faults[counter] -= 1;
  return true;
}
