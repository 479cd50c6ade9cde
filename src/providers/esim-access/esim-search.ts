import { type ProviderOrderRequest, ProviderOutcomeUnknown } from '../esim-provider.js';
import { arrayAt, countAt, objectAt, PartialResponse } from '../http/index.js';
import type { ProviderPurchase } from '../live-provider.js';
import { type CallOptions, type EsimAccessApi, retryShortWaits } from './esim-access-api.js';
import { isAllocating, type QueriedEsim, statusOf, toQueriedEsim } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';

/** The period in which the provider created the eSIMs. */
export interface IssueWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

interface EsimPage {
  readonly esims: readonly unknown[];
  readonly pages: number;
}

/** Maximum page size of the contract. */
export const PAGE_SIZE = 500;
const FIRST_PAGE = { pageNum: 1, pageSize: PAGE_SIZE };

/** Calls `esim/query` with each of the keys that we use. */
export class EsimSearch {
  constructor(private readonly api: EsimAccessApi) {}

  /** `allocating` while the provider creates profiles; null for an order that the provider does not know. */
  async ofOrder(
    orderNo: string,
    options: CallOptions,
  ): Promise<readonly QueriedEsim[] | 'allocating' | null> {
    try {
      const { esims } = await this.query({ orderNo, pager: FIRST_PAGE }, options);
      return esims.length === 0 ? null : esims.map(toQueriedEsim);
    } catch (error) {
      if (isRefusal(error, CODES.allocating)) return 'allocating';
      if (isRefusal(error, CODES.unknownOrder)) return null;
      throw error;
    }
  }

  /** Null when the provider does not know it. */
  async byTranNo(esimTranNo: string, options: CallOptions): Promise<QueriedEsim | null> {
    try {
      const { esims } = await this.query({ esimTranNo, pager: FIRST_PAGE }, options);
      return esims.map(toQueriedEsim).find((esim) => esim.esimTranNo === esimTranNo) ?? null;
    } catch (error) {
      if (isRefusal(error, CODES.unknownEsim) || isRefusal(error, CODES.unknownOrder)) return null;
      throw error;
    }
  }

  /** One page of a window. Its eSIMs stay unparsed, so that a malformed one does not hide the others. */
  async page(window: IssueWindow, pageNum: number, options: CallOptions): Promise<EsimPage> {
    const { fromMs, toMs } = window;
    const fields = { startTime: toWireTime(fromMs), endTime: toWireTime(toMs) };
    return this.query({ ...fields, pager: { pageNum, pageSize: PAGE_SIZE } }, options);
  }

  private async query(fields: object, options: CallOptions): Promise<EsimPage> {
    const answer = await this.api.call('esim/query', fields, options);
    const total = countAt(objectAt(answer, 'pager'), 'total');
    return { esims: arrayAt(answer, 'esimList'), pages: Math.ceil(total / PAGE_SIZE) };
  }
}

export function isRefusal(error: unknown, code: string): error is EsimAccessRefusal {
  return error instanceof EsimAccessRefusal && error.code === code;
}

function toWireTime(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** Maximum difference between the provider's clock and ours. */
const CLOCK_SKEW_MS = 120_000;
/** Nearly every order is placed within this time after acceptance. */
const USUAL_DELAY_MS = 600_000;
/** 30,000 eSIMs take about eight seconds at the contract's rate, which fits one call's deadline. */
const MAX_PAGES = 60;

/** Widens the window by the clock skew on both sides. */
export function withinClockSkew(from: Date, to: Date): IssueWindow {
  return { fromMs: from.getTime() - CLOCK_SKEW_MS, toMs: to.getTime() + CLOCK_SKEW_MS };
}

/** The provider sold more eSIMs during the order than one deadline allows us to search. */
export class TooManyEsims extends ProviderOutcomeUnknown {
  constructor() {
    super(new Error('too many eSIMs to look through'));
  }
}

/** Finds an order's eSIMs by their creation time, because `esim/query` cannot search by our reference. */
export class OrderSearch {
  constructor(private readonly search: EsimSearch) {}

  /**
   * The order's eSIMs in wire format, each once. Searches the most likely minutes first, then all the time since
   * acceptance. It does not parse other customers' eSIMs, so a malformed one cannot hide ours.
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

/**
 * Lists every eSIM with an order's transactionId, canceled or not. Searches by time, because `esim/query` has no such
 * key.
 */
export class PurchaseListing {
  constructor(private readonly search: EsimSearch) {}

  /** @throws ProviderOutcomeUnknown, ProviderUnavailable, EsimAccessRefusal */
  async list(
    order: ProviderOrderRequest,
    placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]> {
    const options: CallOptions = { purpose: 'poll', signal };
    const window = withinClockSkew(order.acceptedAt, placedBefore);
    const found = new Map<string, ProviderPurchase>();
    for (let pageNum = 1; ; pageNum++) {
      const { esims, pages } = await retryShortWaits(
        () => this.search.page(window, pageNum, options),
        options,
      );
      for (const value of esims) {
        // Do not parse other customers' eSIMs: a malformed one must not hide ours.
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
