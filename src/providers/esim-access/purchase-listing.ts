import {
  type ProviderOrderRequest,
  ProviderOutcomeUnknown,
  type ProviderPurchase,
} from '../esim-provider.js';
import type { CallOptions } from './esim-access-api.js';
import { patiently } from './map-usage.js';
import type { EsimSearch } from './esim-search.js';
import { isAllocating, statusOf } from './esim-status.js';
import { toQueriedEsim } from './queried-esim.js';

/** The provider's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 120_000;
/** 30,000 eSIMs in the time of one order: more cannot be looked through within one deadline. */
const MAX_PAGES = 60;

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
      const { esims, pages } = await patiently(() => this.search.page(window, pageNum, options), options);
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
