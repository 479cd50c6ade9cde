import type { Logger } from 'pino';
import {
  type Placement,
  type ProviderCost,
  type ProviderFailure,
  ProviderOutcomeUnknown,
  type ProviderProfile,
  ProviderUnavailable,
} from '../esim-provider.js';
import type { CallPurpose } from '../http/index.js';
import { eachValue, settleEach } from './settle-each.js';
import type { PurchaseBody, ZenditApi } from './zendit-api.js';
import { FUNDS_EXHAUSTED, TAKEN_BACK, toFailure, type ZenditRefusal } from './zendit-errors.js';
import type { ZenditPurchase } from './zendit-purchase.js';

/** State of one of an order's purchases, or of a top-up's only one. */
export type PurchaseState =
  | { readonly state: 'running' }
  | {
      readonly state: 'done';
      /** Null for a plan on an existing eSIM, which already has its profile. */
      readonly profile: ProviderProfile | null;
      readonly actualCost: ProviderCost | null;
    }
  | { readonly state: 'failed'; readonly failure: ProviderFailure };

/** Purchases of one order or top-up: same offer, same purpose. */
export interface PurchaseBatch {
  readonly transactionIds: readonly string[];
  /** Reference of our order or top-up. */
  readonly reference: string;
  readonly offerId: string;
  /** The eSIM that receives the plan; null for a new eSIM. */
  readonly iccid: string | null;
  readonly purpose: CallPurpose;
  readonly unitCost: ProviderCost | null;
}

/**
 * The client's rate limiter spaces the calls; this only keeps a large order from waiting for one response at a time.
 */
const CALLS_AT_ONCE = 6;

const RUNNING: PurchaseState = { state: 'running' };

/**
 * Buys and tracks purchases. A repeated POST with a known transactionId is undocumented, so none is ever sent on
 * purpose: a purchase that may be known is looked up first (docs/providers.md).
 */
export class ZenditPurchasing {
  constructor(
    private readonly api: ZenditApi,
    private readonly logger: Pick<Logger, 'warn' | 'error'>,
  ) {}

  /** Every purchase as Zendit knows it; null for unknown ones. @throws ProviderUnavailable, ProviderOutcomeUnknown */
  find(batch: PurchaseBatch, signal: AbortSignal): Promise<readonly (PurchaseState | null)[]> {
    return eachValue(batch.transactionIds, CALLS_AT_ONCE, async (transactionId) => {
      const purchase = await this.api.findPurchase(transactionId, batch.purpose, signal);
      return purchase && this.toState(purchase, batch);
    });
  }

  /**
   * Posts the purchases that Zendit does not know. If it accepts some and is then busy, the next lookup finds the
   * others missing.
   * @throws ProviderOutcomeUnknown when a post may have taken effect, ProviderUnavailable when none has
   */
  async place(
    batch: PurchaseBatch,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<readonly PurchaseState[]> {
    const known =
      placement === 'first' ? batch.transactionIds.map(() => null) : await this.find(batch, signal);
    const missing = batch.transactionIds.filter((_, i) => known[i] === null);
    const placed = await this.postAll(batch, missing, placement, signal);
    return batch.transactionIds.map((id, i) => known[i] ?? placed.get(id) ?? RUNNING);
  }

  private async postAll(
    batch: PurchaseBatch,
    missing: readonly string[],
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PurchaseState>> {
    const settled = await settleEach(missing, CALLS_AT_ONCE, (id) => this.post(batch, id, placement, signal));
    const placed = new Map<string, PurchaseState>();
    const errors: Error[] = [];
    settled.forEach((one, i) => {
      if ('error' in one) errors.push(one.error);
      else placed.set(missing[i]!, one.value);
    });
    const unknown = errors.find((error) => !(error instanceof ProviderUnavailable));
    if (unknown) throw unknown;
    // After "unavailable" the caller may place everything as if for the first time, so nothing may have been sent.
    const hasEffect = [...placed.values()].some(({ state }) => state !== 'failed');
    if (errors[0] && !hasEffect) throw errors[0];
    return placed;
  }

  private async post(
    batch: PurchaseBatch,
    transactionId: string,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<PurchaseState> {
    const { offerId, iccid, purpose, reference } = batch;
    const operation = iccid === null ? 'order' : 'topup';
    const body: PurchaseBody = { transactionId, offerId, ...(iccid === null ? {} : { iccid }) };
    const answer = await this.api.postPurchase(body, { operation, reference }, signal);
    // Whatever the status, the purchase itself is read before the order or top-up ends.
    if (answer.accepted) return RUNNING;
    if (answer.refusal.status !== 404 || placement === 'again') {
      const known = await this.api.findPurchase(transactionId, purpose, signal);
      if (known) return this.toState(known, batch);
      if (mayBeKnown(answer.refusal, placement)) throw new ProviderOutcomeUnknown();
    }
    return this.failed(refusalCode(answer.refusal), batch);
  }

  private toState(purchase: ZenditPurchase, batch: PurchaseBatch): PurchaseState {
    switch (purchase.progress) {
      case 'running':
        return RUNNING;
      case 'failed':
        return this.failed(purchase.errorCode, batch);
      case 'done':
        return this.toEnd(purchase, batch);
    }
  }

  /** A purchase that Zendit's support refunded before delivery counts as not sold: nobody pays for it. */
  private toEnd(purchase: ZenditPurchase, batch: PurchaseBatch): PurchaseState {
    const refund = purchase.refund();
    if (refund === 'running') return RUNNING;
    if (refund === 'done') return { state: 'failed', failure: TAKEN_BACK };
    // Zendit does not promise an activation code for a plan on an existing eSIM.
    const profile = batch.iccid === null ? purchase.profile() : null;
    return { state: 'done', profile, actualCost: this.actualCost(purchase, batch) };
  }

  private failed(errorCode: string | null, { purpose, offerId }: PurchaseBatch): PurchaseState {
    if (errorCode === FUNDS_EXHAUSTED)
      this.logger.error({ event: 'provider.funds_exhausted', provider: 'zendit', purpose, offerId });
    return { state: 'failed', failure: toFailure(errorCode) };
  }

  /** A POST names no price, so a price change since the catalog shows only here. */
  private actualCost(
    { transactionId, cost }: ZenditPurchase,
    { unitCost, offerId }: PurchaseBatch,
  ): ProviderCost | null {
    if (!cost || !unitCost) return null;
    const isSameCurrency = cost.currency === unitCost.currency;
    if (isSameCurrency && cost.micros === unitCost.micros) return null;
    const line = { provider: 'zendit', transactionId, offerId, paidMicros: cost.micros };
    this.logger.warn({ event: 'provider.cost_differs', ...line, expectedMicros: unitCost.micros });
    return isSameCurrency && cost.micros < unitCost.micros ? null : cost;
  }
}

/** The purchase POST documents no 404: an offer that is not sold may be a 400 that names it. */
function refusalCode({ status, errorCode, about }: ZenditRefusal): string | null {
  if (status === 404) return 'NOT_FOUND';
  return about === 'offer' && toFailure(errorCode).code === 'provider_rejected' ? 'OFFER_REFUSED' : errorCode;
}

/**
 * 400 INVALID_REQUEST may mean that the id was used before, while a lagging read does not show the purchase yet. Unless
 * the refusal names another reason, a repeated placement does not treat it as final.
 */
function mayBeKnown(refusal: ZenditRefusal, placement: Placement): boolean {
  return refusal.about === 'transaction' || (placement === 'again' && refusal.about === 'unsaid');
}
