import { type ProviderOrderRequest, ProviderOutcomeUnknown } from '../esim-provider.js';
import { PartialResponse } from '../http/index.js';
import type { CallOptions } from './esim-access-api.js';
import type { EsimSearch, IssueWindow } from './esim-search.js';

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
