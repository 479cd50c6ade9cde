import {
  type Confirmation,
  type LogItem,
  type Offer,
  RUNNING,
  type TransactionStatus,
  type UpstreamError,
} from './contract.ts';
import type { ConfirmationShape, Faults } from './faults.ts';

/** A purchase or refund in progress; plain data, so that a restart can read it. */
export interface Progress {
  status: TransactionStatus;
  looksTaken: number;
  /** Number of the query in which it ends. */
  readonly looks: number;
  readonly finishAfterMs: number | null;
  /** Error code with which it ends; null for DONE. */
  readonly outcome: string | null;
  error: UpstreamError | null;
  readonly log: LogItem[];
  readonly createdAtMs: number;
  updatedAtMs: number;
}

export interface Purchase extends Progress {
  readonly transactionId: string;
  readonly offer: Offer;
  /** Set for a plan added to an existing eSIM. */
  readonly topupOf: string | null;
  readonly confirmation: Confirmation;
  readonly confirmationShape: ConfirmationShape;
  readonly costBase: number;
  readonly costFee: number;
  hiddenLooks: number;
  readonly hiddenUntilMs: number;
  refund: Progress | null;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  INSUFFICIENT_FUNDS: 'The wallet does not cover the cost of the purchase',
  OUT_OF_STOCK: 'The provider has no eSIM for this offer',
};

export function newProgress(
  terms: Pick<Progress, 'looks' | 'finishAfterMs' | 'outcome'>,
  nowMs: number,
): Progress {
  return {
    ...terms,
    status: 'ACCEPTED',
    looksTaken: 0,
    error: null,
    log: [{ dateTime: toTime(nowMs), status: 'ACCEPTED', statusMessage: 'Accepted' }],
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

export function hasEnded(progress: Progress): boolean {
  return progress.status === 'DONE' || progress.status === 'FAILED';
}

/** Counts one query. @returns whether it ended with it */
export function look(progress: Progress, nowMs: number): boolean {
  if (hasEnded(progress)) return false;
  progress.looksTaken += 1;
  const share =
    progress.finishAfterMs === null
      ? progress.looksTaken / Math.max(1, progress.looks)
      : (nowMs - progress.createdAtMs) / Math.max(1, progress.finishAfterMs);
  if (share >= 1) {
    end(progress, nowMs);
    return true;
  }
  moveTo(progress, Math.floor(share * RUNNING.length), nowMs);
  return false;
}

/** Passes the remaining statuses and ends it. */
export function end(progress: Progress, nowMs: number): void {
  if (hasEnded(progress)) return;
  moveTo(progress, RUNNING.length - 1, nowMs);
  const { outcome } = progress;
  progress.status = outcome === null ? 'DONE' : 'FAILED';
  progress.updatedAtMs = nowMs;
  if (outcome !== null) {
    const description = DESCRIPTIONS[outcome] ?? 'The provider refused the purchase';
    progress.error = { code: outcome, description, message: description };
  }
  progress.log.push({
    dateTime: toTime(nowMs),
    status: progress.status,
    statusMessage: outcome ?? 'Completed',
  });
}

function moveTo(progress: Progress, index: number, nowMs: number): void {
  const reached = RUNNING.indexOf(progress.status);
  for (const status of RUNNING.slice(reached + 1, index + 1)) {
    progress.status = status;
    progress.updatedAtMs = nowMs;
    progress.log.push({ dateTime: toTime(nowMs), status, statusMessage: status });
  }
}

/**
 * The body of `GET /esim/purchases/{transactionId}`, which is also the webhook's body. Missing values are omitted, as
 * in the official SDK; nothing is null.
 */
export function purchaseBody(
  purchase: Purchase,
  { refundInPurchase, feeBesideCost }: Pick<Faults, 'refundInPurchase' | 'feeBesideCost'>,
): Record<string, unknown> {
  const { offer } = purchase;
  return {
    transactionId: purchase.transactionId,
    status: purchase.status,
    offerId: offer.offerId,
    productType: 'ESIM',
    brand: offer.brand,
    brandName: offer.brandName,
    country: offer.country,
    regions: offer.regions,
    subTypes: offer.subTypes,
    roaming: offer.roaming.map(({ country, dataSpeeds }) => ({ country, dataSpeeds })),
    dataGB: offer.dataGB,
    dataUnlimited: offer.dataUnlimited,
    dataSpeeds: offer.dataSpeeds,
    durationDays: offer.durationDays,
    voiceMinutes: offer.voiceMinutes,
    voiceUnlimited: offer.voiceUnlimited,
    smsNumber: offer.smsNumber,
    smsUnlimited: offer.smsUnlimited,
    ...confirmationOf(purchase),
    cost: feeBesideCost ? purchase.costBase : totalCost(purchase),
    costBase: purchase.costBase,
    costFee: purchase.costFee,
    costCurrency: offer.cost.currency,
    costCurrencyDivisor: offer.cost.currencyDivisor,
    price: offer.price.fixed + offer.price.fee,
    priceBase: offer.price.fixed,
    priceFee: offer.price.fee,
    priceCurrency: offer.price.currency,
    priceCurrencyDivisor: offer.price.currencyDivisor,
    priceType: offer.priceType,
    notes: offer.notes,
    shortNotes: offer.shortNotes,
    value: { type: 'ZEND', value: offer.dataGB },
    ...(purchase.error ? { error: purchase.error } : {}),
    ...(purchase.refund && refundInPurchase ? { refund: { status: purchase.refund.status } } : {}),
    log: purchase.log,
    createdAt: toTime(purchase.createdAtMs),
    updatedAt: toTime(purchase.updatedAtMs),
  };
}

function confirmationOf({ status, confirmation, confirmationShape }: Purchase): Record<string, unknown> {
  if (status !== 'DONE' || confirmationShape === 'absent') return {};
  if (confirmationShape === 'full') return { confirmation };
  return { confirmation: Object.fromEntries(Object.keys(confirmation).map((field) => [field, ''])) };
}

/** The wallet's payment for it, in the smallest unit. */
export function totalCost({ costBase, costFee }: Pick<Purchase, 'costBase' | 'costFee'>): number {
  return costBase + costFee;
}

export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
