import type { Logger } from 'pino';
import {
  type Placement,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type UpstreamCost,
} from '../esim-provider.js';
import { textAt } from '../upstream/index.js';
import { type CallOptions, ESIM_ACCESS, type EsimAccessApi } from './esim-access-api.js';
import type { EsimSearch, IssueWindow } from './esim-search.js';
import { isAllocating, statusOf } from './esim-status.js';
import { isLuhnValid, type QueriedEsim, toProfile, toQueriedEsim } from './queried-esim.js';
import { EsimAccessRefusal, failureOf } from './refusal.js';

const LOOK_AGAIN_MS = 1_000;
/** The upstream's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 120_000;
/** Nearly every order leaves this soon after it was accepted. */
const USUAL_DELAY_MS = 600_000;
/** 30,000 eSIMs: about eight seconds at the contract's pace, which fits into one call's deadline. */
const MAX_PAGES = 60;
const MAX_REMEMBERED = 10_000;
/** A price of the wire is 1/10,000 USD, a hundred millionths. */
const MICROS_PER_PRICE = 100;

/**
 * Orders. A repeated `esim/order` with the same transactionId is documented as the same request, so it costs nothing
 * to place again, and the answer's orderNo leads to the eSIMs.
 */
export class OrderPlacement {
  /** Only saves searching; the truth is upstream. */
  private readonly orderNumbers = new Map<string, string>();

  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  async place(
    order: ProviderOrderRequest,
    _placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState> {
    const options: CallOptions = { purpose: 'order', signal };
    let orderNo: string;
    try {
      orderNo = textAt(await this.api.call('esim/order', toOrderFields(order), options), 'orderNo');
    } catch (error) {
      return rejectionOf(error);
    }
    this.remember(order.reference, orderNo);
    try {
      return (await this.follow(order, orderNo, options)) ?? inProgress();
    } catch (error) {
      // The order stands; whatever this look met must not make it look refused or never sent.
      if (error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown)
        return inProgress();
      if (error instanceof EsimAccessRefusal) return inProgress();
      throw error;
    }
  }

  async find(order: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState | null> {
    const options: CallOptions = { purpose: 'order', signal };
    const orderNo = this.orderNumbers.get(order.reference);
    try {
      const known = orderNo === undefined ? null : await this.follow(order, orderNo, options);
      return known ?? (await this.searchByTime(order, options));
    } catch (error) {
      if (error instanceof EsimAccessRefusal) throw new ProviderOutcomeUnknown(error);
      throw error;
    }
  }

  private async follow(
    order: ProviderOrderRequest,
    orderNo: string,
    options: CallOptions,
  ): Promise<ProviderOrderState | null> {
    const esims = await this.search.ofOrder(orderNo, options);
    if (esims === null) return null;
    return esims === 'allocating' ? inProgress() : this.toState(order, esims);
  }

  /** First the minutes in which it most likely was made, then all the time since. */
  private async searchByTime(
    order: ProviderOrderRequest,
    options: CallOptions,
  ): Promise<ProviderOrderState | null> {
    const acceptedMs = order.acceptedAt.getTime();
    const usualMs = acceptedMs + USUAL_DELAY_MS;
    const nowMs = Math.max(Date.now(), acceptedMs) + CLOCK_SKEW_MS;
    const windows: IssueWindow[] = [{ fromMs: acceptedMs - CLOCK_SKEW_MS, toMs: Math.min(usualMs, nowMs) }];
    if (nowMs > usualMs) windows.push({ fromMs: usualMs, toMs: nowMs });
    const found: QueriedEsim[] = [];
    for (const window of windows) {
      found.push(...(await this.readWindow(order, window, options)));
      if (found.length >= order.quantity) break;
    }
    if (found.length === 0) return null;
    this.remember(order.reference, found[0]!.orderNo);
    return this.toState(order, uniqueByTranNo(found));
  }

  private async readWindow(
    order: ProviderOrderRequest,
    window: IssueWindow,
    options: CallOptions,
  ): Promise<QueriedEsim[]> {
    const found = new Map<string, QueriedEsim>();
    for (let pageNum = 1; ; pageNum++) {
      const { esims, pages } = await this.search.page(window, pageNum, options);
      for (const value of esims) {
        // Others' eSIMs are not read any further: an ill-formed one is no reason not to find ours.
        if ((value as { transactionId?: unknown } | null)?.transactionId !== order.reference) continue;
        const esim = toQueriedEsim(value);
        found.set(esim.esimTranNo, esim);
      }
      if (found.size >= order.quantity || pageNum >= pages) return [...found.values()];
      if (pageNum >= MAX_PAGES) throw new ProviderOutcomeUnknown(new Error('too many eSIMs to look through'));
    }
  }

  /** All eSIMs of the order must have been allocated before it counts as provisioned. */
  private toState(order: ProviderOrderRequest, esims: readonly QueriedEsim[]): ProviderOrderState {
    const isKnown = (esim: QueriedEsim) => !isAllocating(esim) && statusOf(esim) !== null;
    if (esims.length < order.quantity || !esims.every(isKnown)) return inProgress();
    const profiles = esims.filter((esim) => statusOf(esim) !== 'canceled').map(toProfile);
    for (const { iccid } of profiles)
      if (!isLuhnValid(iccid))
        this.logger.warn({ event: 'upstream.iccid_not_luhn', provider: ESIM_ACCESS, iccid });
    const shortfall = {
      code: 'provider_rejected',
      reason: 'The upstream took eSIMs of the order back.',
    } as const;
    if (profiles.length === 0) return { state: 'rejected', failure: shortfall };
    return { state: 'provisioned', profiles, shortfall: profiles.length < order.quantity ? shortfall : null };
  }

  private remember(reference: string, orderNo: string): void {
    this.orderNumbers.set(reference, orderNo);
    if (this.orderNumbers.size <= MAX_REMEMBERED) return;
    this.orderNumbers.delete(this.orderNumbers.keys().next().value!);
  }
}

/** @throws RangeError for a cost that this wire cannot say: sending none would buy at any price. */
export function toWirePrice(cost: UpstreamCost): number {
  if (cost.micros % MICROS_PER_PRICE !== 0 || cost.currency !== 'USD')
    throw new RangeError('eSIM Access is charged in 1/10,000 USD');
  return cost.micros / MICROS_PER_PRICE;
}

/** The state that a refusal means. @throws the error itself when it is none, or does not say what happened. */
export function rejectionOf(error: unknown): Extract<ProviderOrderState, { state: 'rejected' }> {
  if (!(error instanceof EsimAccessRefusal)) throw error;
  const failure = failureOf(error.code);
  if (failure === null) throw new ProviderOutcomeUnknown(error);
  return { state: 'rejected', failure };
}

function toOrderFields({ reference, upstreamPackageId, quantity, unitCost }: ProviderOrderRequest): object {
  const line = { packageCode: upstreamPackageId, count: quantity };
  if (unitCost === null) return { transactionId: reference, packageInfoList: [line] };
  const price = toWirePrice(unitCost);
  return { transactionId: reference, amount: price * quantity, packageInfoList: [{ ...line, price }] };
}

function inProgress(): ProviderOrderState {
  return { state: 'in_progress', checkAfterMs: LOOK_AGAIN_MS };
}

function uniqueByTranNo(esims: readonly QueriedEsim[]): QueriedEsim[] {
  return [...new Map(esims.map((esim) => [esim.esimTranNo, esim])).values()];
}
