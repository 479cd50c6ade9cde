import { type ProviderOrderRequest, ProviderOutcomeUnknown } from '../esim-provider.js';
import type { ProviderPurchase } from '../live-provider.js';
import { PartialResponse } from '../http/index.js';
import { type CallOptions, retryShortWaits } from './esim-access-api.js';
import type { EsimSearch, IssueWindow } from './esim-search.js';
import { isAllocating, statusOf, toQueriedEsim } from './queried-esim.js';

/** The provider's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 120_000;
/** Nearly every order leaves this soon after it was accepted. */
const USUAL_DELAY_MS = 600_000;
/** 30,000 eSIMs: about eight seconds at the contract's pace, which fits into one call's deadline. */
const MAX_PAGES = 60;

/** More eSIMs were sold in the time of an order than one deadline allows to look through. */
export class TooManyEsims extends ProviderOutcomeUnknown {
  constructor() {
    super(new Error('too many eSIMs to look through'));
  }
}

/** Finds the eSIMs of an order by the time in which they were made: `esim/query` knows no name of ours. */
export class OrderSearch {
  constructor(private readonly search: EsimSearch) {}

  /**
   * The order's eSIMs as the wire has them, each once: first of the minutes in which they most likely were made, then
   * of all the time since. Others' eSIMs are not read: an ill-formed one is no reason not to find ours.
   * @throws TooManyEsims, ProviderOutcomeUnknown, ProviderUnavailable, EsimAccessRefusal
   */
  async list(order: ProviderOrderRequest, options: CallOptions): Promise<readonly unknown[]> {
    const found = new Map<unknown, unknown>();
    for (const window of windowsOf(order)) {
      await this.readWindow(order, window, found, options);
      if (found.size >= order.quantity) break;
    }
    return [...found.values()];
  }

  private async readWindow(
    { reference, quantity }: ProviderOrderRequest,
    window: IssueWindow,
    found: Map<unknown, unknown>,
    options: CallOptions,
  ): Promise<void> {
    for (let pageNum = 1; ; pageNum++) {
      const { esims, pages } = await this.search.page(window, pageNum, options).catch((error: unknown) => {
        if (found.size > 0 && error instanceof ProviderOutcomeUnknown) throw new PartialResponse(error);
        throw error;
      });
      for (const value of esims) {
        const esim = value as { transactionId?: unknown; esimTranNo?: unknown } | null;
        if (esim?.transactionId === reference) found.set(esim.esimTranNo, esim);
      }
      if (found.size >= quantity || pageNum >= pages) return;
      if (pageNum >= MAX_PAGES) throw new TooManyEsims();
    }
  }
}

function windowsOf({ acceptedAt }: ProviderOrderRequest): readonly IssueWindow[] {
  const acceptedMs = acceptedAt.getTime();
  const usualMs = acceptedMs + USUAL_DELAY_MS;
  const nowMs = Math.max(Date.now(), acceptedMs) + CLOCK_SKEW_MS;
  const usual = { fromMs: acceptedMs - CLOCK_SKEW_MS, toMs: Math.min(usualMs, nowMs) };
  return nowMs > usualMs ? [usual, { fromMs: usualMs, toMs: nowMs }] : [usual];
}

/** Every eSIM under an order's transactionId, taken back or not: by time, for `esim/query` knows no such key. */
export class PurchaseListing {
  constructor(private readonly search: EsimSearch) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable, EsimAccessRefusal */
  async list(
    order: ProviderOrderRequest,
    placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]> {
    const options: CallOptions = { purpose: 'poll', signal };
    const window = {
      fromMs: order.acceptedAt.getTime() - CLOCK_SKEW_MS,
      toMs: placedBefore.getTime() + CLOCK_SKEW_MS,
    };
    const found = new Map<string, ProviderPurchase>();
    for (let pageNum = 1; ; pageNum++) {
      const { esims, pages } = await retryShortWaits(
        () => this.search.page(window, pageNum, options),
        options,
      );
      for (const value of esims) {
        // Others' eSIMs are not read any further: an ill-formed one is no reason not to find ours.
        if ((value as { transactionId?: unknown } | null)?.transactionId !== order.reference) continue;
        const purchase = toPurchase(value);
        found.set(purchase.providerEsimId, purchase);
      }
      if (pageNum >= pages) return [...found.values()];
      if (pageNum >= MAX_PAGES) throw new ProviderOutcomeUnknown(new Error('too many eSIMs to look through'));
    }
  }
}

function toPurchase(value: unknown): ProviderPurchase {
  const esim = toQueriedEsim(value);
  if (statusOf(esim) === 'canceled') return { providerEsimId: esim.esimTranNo, state: 'taken_back' };
  return { providerEsimId: esim.esimTranNo, state: isAllocating(esim) ? 'in_progress' : 'sold' };
}
