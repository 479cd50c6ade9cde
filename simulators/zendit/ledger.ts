import type { ErrorBody, Offer } from './contract.ts';
import type { ControlBody, Faults } from './faults.ts';
import { Journal } from './journal.ts';
import { listedOffers } from './offers.ts';
import { mintConfirmation } from './profiles.ts';
import { end, hasEnded, look, newProgress, type Progress, type Purchase, totalCost } from './purchase.ts';

const MICROS = 1_000_000;
const START_BALANCE_MICROS = 100_000 * MICROS;

/** A refusal without any effect. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

/** State of the wholesaler: offers, purchases, refunds and the wallet. */
export class Ledger {
  readonly offers: Map<string, Offer> = listedOffers();
  readonly purchases: Map<string, Purchase>;
  balanceMicros = START_BALANCE_MICROS;
  duplicatePosts = 0;
  duplicateRefunds = 0;
  private readonly journal: Journal<Purchase>;
  private readonly faults: Faults;
  private readonly onEnd: (purchase: Purchase) => void;

  constructor(faults: Faults, statePath: string | null, onEnd: (purchase: Purchase) => void) {
    this.faults = faults;
    this.onEnd = onEnd;
    this.journal = new Journal<Purchase>(statePath);
    this.purchases = this.journal.load();
    for (const purchase of this.purchases.values()) {
      if (purchase.status !== 'FAILED' && purchase.refund?.status !== 'DONE')
        this.balanceMicros -= heldMicros(purchase);
    }
  }

  /** @throws Refusal 400 for a bad or known request, 404 or 400 for an offer that cannot be bought */
  buy(request: Readonly<Record<string, unknown>>): Purchase {
    const transactionId = requireText(request, 'transactionId');
    const offerId = requireText(request, 'offerId');
    const topupOf = request['iccid'] === undefined ? null : requireText(request, 'iccid');
    if (this.purchases.has(transactionId)) {
      this.duplicatePosts += 1;
      throw this.duplicate();
    }
    const offer = this.offers.get(offerId);
    if (!offer?.enabled) throw this.noSuchOffer();
    if (topupOf !== null && !this.knowsIccid(topupOf))
      throw invalid('iccid', 'no eSIM of this account has the ICCID');
    if (this.faults.sellsOnly !== null && this.faults.sellsOnly-- <= 0) throw unsaid();
    const purchase = this.newPurchase(transactionId, structuredClone(offer), topupOf);
    this.purchases.set(transactionId, purchase);
    this.balanceMicros -= heldMicros(purchase);
    this.keep(purchase);
    return purchase;
  }

  private noSuchOffer(): Refusal {
    const message = 'offer not found';
    return this.faults.unknownOfferStatus === 404 ? notFound(message) : invalid('offerId', message);
  }

  private duplicate(): Refusal {
    return this.faults.vagueDuplicates ? unsaid() : invalid('transactionId', 'transactionId was used before');
  }

  private newPurchase(transactionId: string, offer: Offer, topupOf: string | null): Purchase {
    const nowMs = Date.now();
    const { faults } = this;
    const { fixed: costBase, fee, feePct, currencyDivisor } = offer.cost;
    const costFee = fee + Math.round(costBase * feePct) + faults.purchaseFee;
    const isFunded = this.balanceMicros >= toMicros(costBase + costFee, currencyDivisor);
    const outcome =
      faults.outcomes.shift() ??
      (faults.outOfStock ? 'OUT_OF_STOCK' : isFunded ? null : 'INSUFFICIENT_FUNDS');
    return {
      ...newProgress({ looks: faults.looks, finishAfterMs: faults.finishAfterMs, outcome }, nowMs),
      transactionId,
      offer,
      topupOf,
      confirmation: mintConfirmation(faults, topupOf),
      confirmationShape: topupOf === null ? 'full' : faults.topupConfirmation,
      costBase,
      costFee,
      hiddenLooks: faults.readLagLooks,
      hiddenUntilMs: nowMs + faults.readLagMs,
      refund: null,
    };
  }

  /** Returns a purchase; the query itself advances it. @throws Refusal 404 */
  see(transactionId: string): Purchase {
    const purchase = this.purchases.get(transactionId);
    if (!purchase || this.isHidden(purchase)) throw notFound('transaction not found');
    if (look(purchase, Date.now())) this.ended(purchase);
    this.lookAtRefund(purchase);
    return purchase;
  }

  private isHidden(purchase: Purchase): boolean {
    if (Date.now() < purchase.hiddenUntilMs) return true;
    if (purchase.hiddenLooks <= 0) return false;
    purchase.hiddenLooks -= 1;
    return true;
  }

  /** Ends a purchase by time, without a query. */
  finish(transactionId: string): void {
    const purchase = this.purchases.get(transactionId);
    if (!purchase || hasEnded(purchase)) return;
    end(purchase, Date.now());
    this.ended(purchase);
  }

  private ended(purchase: Purchase): void {
    if (purchase.status === 'FAILED') this.balanceMicros += heldMicros(purchase);
    this.keep(purchase);
    this.onEnd(purchase);
  }

  /** @throws Refusal 404 for an unknown purchase, 400 for one that is not DONE or already has a refund */
  startRefund(transactionId: string): Progress {
    const purchase = this.purchases.get(transactionId);
    if (!purchase) throw notFound('transaction not found');
    if (purchase.refund) {
      this.duplicateRefunds += 1;
      throw invalid('transactionId', 'a refund of this transaction exists');
    }
    if (purchase.status !== 'DONE') throw invalid('transactionId', 'the transaction is not DONE');
    const { looks, finishAfterMs, refundOutcome } = this.faults;
    purchase.refund = newProgress({ looks, finishAfterMs, outcome: refundOutcome }, Date.now());
    this.keep(purchase);
    return purchase.refund;
  }

  /** @throws Refusal when there is no refund */
  seeRefund(transactionId: string): { purchase: Purchase; refund: Progress } {
    const purchase = this.purchases.get(transactionId);
    if (!purchase?.refund) throw withStatus(this.faults.noRefundStatus, 'refund not found');
    this.lookAtRefund(purchase);
    return { purchase, refund: purchase.refund };
  }

  private lookAtRefund(purchase: Purchase): void {
    if (!purchase.refund || !look(purchase.refund, Date.now())) return;
    if (purchase.refund.status === 'DONE') this.balanceMicros += heldMicros(purchase);
    this.keep(purchase);
  }

  /** The finished purchases of one ICCID, the eSIM's own first. */
  plansOf(iccid: string): Purchase[] {
    return [...this.purchases.values()].filter(
      (purchase) => purchase.status === 'DONE' && purchase.confirmation.iccid === iccid,
    );
  }

  private knowsIccid(iccid: string): boolean {
    return this.plansOf(iccid).length > 0;
  }

  /** Applies a control body's changes to offers and balance. */
  adjust(control: ControlBody): void {
    if (control.balance !== undefined) this.balanceMicros = toMicros(control.balance, 100);
    for (const [offerId, change] of Object.entries(control.offers ?? {})) {
      const offer = this.offers.get(offerId);
      if (!offer) throw invalid('offers', `no offer ${offerId}`);
      if (change.enabled !== undefined) offer.enabled = change.enabled;
      if (change.costFixed !== undefined) offer.cost.fixed = change.costFixed;
      offer.updatedAt = new Date().toISOString();
    }
  }

  private keep(purchase: Purchase): void {
    this.journal.append(purchase.transactionId, purchase);
  }
}

/** Amount that the wallet reserves or has paid for a purchase. */
function heldMicros(purchase: Purchase): number {
  if (purchase.outcome === 'INSUFFICIENT_FUNDS') return 0;
  return toMicros(totalCost(purchase), purchase.offer.cost.currencyDivisor);
}

function toMicros(amount: number, divisor: number): number {
  return Math.round((amount * MICROS) / divisor);
}

function requireText(request: Readonly<Record<string, unknown>>, field: string): string {
  const value = request[field];
  if (typeof value !== 'string' || value === '') throw invalid(field, `${field} is required`);
  return value;
}

function notFound(message: string): Refusal {
  return withStatus(404, message);
}

/** The refusal for an object that does not exist, with this status. */
export function withStatus(status: 400 | 404 | 500, message: string): Refusal {
  const errorCode = { 400: 'INVALID_REQUEST', 404: 'NOT_FOUND', 500: 'INTERNAL_ERROR' }[status];
  return new Refusal(status, { errorCode, message, fields: {} });
}

function unsaid(): Refusal {
  return new Refusal(400, { errorCode: 'INVALID_REQUEST', message: 'invalid request', fields: {} });
}

function invalid(field: string, message: string): Refusal {
  return new Refusal(400, { errorCode: 'INVALID_REQUEST', message, fields: { [field]: message } });
}
