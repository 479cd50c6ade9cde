import { type ProviderOrderRequest, ProviderOutcomeUnknown } from '../esim-provider.js';
import { arrayAt, countAt, objectAt, PartialResponse } from '../http/index.js';
import type { ProviderPurchase } from '../live-provider.js';
import { type CallOptions, type EsimAccessApi, retryShortWaits } from './esim-access-api.js';
import { isAllocating, type QueriedEsim, statusOf, toQueriedEsim } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';

/** eSIMs that the provider made between the two times. */
export interface IssueWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

interface EsimPage {
  readonly esims: readonly unknown[];
  readonly pages: number;
}

/** The most that the contract allows. */
export const PAGE_SIZE = 500;
const FIRST_PAGE = { pageNum: 1, pageSize: PAGE_SIZE };

/** `esim/query`, by each of the keys that we use. */
export class EsimSearch {
  constructor(private readonly api: EsimAccessApi) {}

  /** `allocating` while profiles are made; null for an order that the provider does not know. */
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

  /** One page of a window; its eSIMs unread, for one that is ill-formed must not hide the others. */
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

/** The provider's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 120_000;
/** Nearly every order leaves this soon after it was accepted. */
const USUAL_DELAY_MS = 600_000;
/** 30,000 eSIMs: about eight seconds at the contract's pace, which fits into one call's deadline. */
const MAX_PAGES = 60;

/** Both clocks' readings of a time are in it. */
export function withinClockSkew(from: Date, to: Date): IssueWindow {
  return { fromMs: from.getTime() - CLOCK_SKEW_MS, toMs: to.getTime() + CLOCK_SKEW_MS };
}

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
    const window = withinClockSkew(order.acceptedAt, placedBefore);
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
