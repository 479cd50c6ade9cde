import type { Logger } from 'pino';
import {
  type Placement,
  type ProviderCost,
  type ProviderFailure,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderProfile,
  ProviderUnavailable,
} from '../esim-provider.js';
import { asObject, ProviderResponseInvalid, textAt, usableOrNull } from '../http/index.js';
import { type CallOptions, ESIM_ACCESS, type EsimAccessApi } from './esim-access-api.js';
import { type EsimSearch, isRefusal, OrderSearch, TooManyEsims } from './esim-search.js';
import {
  isAllocating,
  isLuhnValid,
  type QueriedEsim,
  statusOf,
  toProfile,
  toQueriedEsim,
} from './queried-esim.js';
import { CODES, EsimAccessRefusal, failureOf } from './refusal.js';

const LOOK_AGAIN_MS = 1_000;
const MAX_REMEMBERED = 10_000;
/** Wire prices count 1/10,000 USD, which is 100 micros. */
const MICROS_PER_PRICE = 100;

/**
 * Places orders. A repeated `esim/order` with the same transactionId is documented as the same request. Placing again
 * therefore costs nothing, and the orderNo in the response leads to the eSIMs.
 */
export class OrderPlacement {
  /** A cache that saves searches; the provider holds the truth. */
  private readonly orderNumbers = new Map<string, string>();
  private readonly byTime: OrderSearch;

  constructor(
    private readonly api: EsimAccessApi,
    private readonly search: EsimSearch,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {
    this.byTime = new OrderSearch(search);
  }

  async place(
    order: ProviderOrderRequest,
    _placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState> {
    const options: CallOptions = { purpose: 'order', signal };
    let orderNo: string;
    try {
      const placement = { operation: 'order', key: order.reference, reference: order.reference } as const;
      orderNo = textAt(await this.api.place(placement, toOrderFields(order), options), 'orderNo');
    } catch (error) {
      return rejectionOf(error);
    }
    this.remember(order.reference, orderNo);
    try {
      return (await this.follow(order, orderNo, options)) ?? inProgress();
    } catch (error) {
      // The order was accepted; an error of this lookup must not make it look refused or never sent.
      if (error instanceof ProviderUnavailable || error instanceof ProviderOutcomeUnknown)
        return inProgress();
      if (error instanceof EsimAccessRefusal) return inProgress();
      throw error;
    }
  }

  /** Like `find`, but also for an incomplete order. @throws ProviderOutcomeUnknown, ProviderUnavailable */
  async findParts(order: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderParts> {
    try {
      return toParts(await this.byTime.list(order, { purpose: 'order', signal }), order.days);
    } catch (error) {
      if (isRefusal(error, CODES.allocating)) return allocating(order.quantity);
      if (error instanceof EsimAccessRefusal) throw new ProviderOutcomeUnknown(error);
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

  private async searchByTime(
    order: ProviderOrderRequest,
    options: CallOptions,
  ): Promise<ProviderOrderState | null> {
    const values = await this.byTime.list(order, options).catch((error: unknown) => {
      // Placing again is the same request and returns its orderNo, which needs no search.
      if (error instanceof TooManyEsims) return [];
      throw error;
    });
    const found = values.map(toQueriedEsim);
    if (found.length === 0) return null;
    this.remember(order.reference, found[0]!.orderNo);
    return this.toState(order, found);
  }

  /**
   * An order counts as provisioned only when all of its eSIMs are allocated.
   * @throws ProviderOutcomeUnknown for fewer days than were bought (D60): support decides
   */
  private toState(order: ProviderOrderRequest, esims: readonly QueriedEsim[]): ProviderOrderState {
    const isKnown = (esim: QueriedEsim) => !isAllocating(esim) && statusOf(esim) !== null;
    if (esims.length < order.quantity || !esims.every(isKnown)) return inProgress();
    const sold = esims.filter((esim) => statusOf(esim) !== 'canceled');
    if (sold.some((esim) => hasTooFewDays(esim, order.days)))
      throw new ProviderOutcomeUnknown(new Error('an eSIM has fewer days than were bought'));
    const profiles = sold.map(toProfile);
    for (const { iccid } of profiles)
      if (!isLuhnValid(iccid))
        this.logger.warn({ event: 'provider.iccid_not_luhn', provider: ESIM_ACCESS, iccid });
    if (profiles.length === 0) return { state: 'rejected', failure: TAKEN_BACK };
    return {
      state: 'provisioned',
      profiles,
      shortfall: profiles.length < order.quantity ? TAKEN_BACK : null,
    };
  }

  private remember(reference: string, orderNo: string): void {
    this.orderNumbers.set(reference, orderNo);
    if (this.orderNumbers.size <= MAX_REMEMBERED) return;
    this.orderNumbers.delete(this.orderNumbers.keys().next().value!);
  }
}

/** @throws RangeError for a cost that the wire cannot express: an order without a price would buy at any price */
export function toWirePrice(cost: ProviderCost): number {
  if (cost.micros % MICROS_PER_PRICE !== 0 || cost.currency !== 'USD')
    throw new RangeError('eSIM Access is charged in 1/10,000 USD');
  return cost.micros / MICROS_PER_PRICE;
}

/**
 * The cost to state in a purchase, so that a higher one is refused; null for several days: no source shows that they
 * cost a multiple of the listed price, and a wrong price is refused.
 */
export function statedCost({
  unitCost,
  days,
}: Pick<ProviderOrderRequest, 'unitCost' | 'days'>): ProviderCost | null {
  return days === null || days === 1 ? unitCost : null;
}

/** The state that a refusal means. @throws the error itself when it is not a refusal, or does not say what happened */
export function rejectionOf(error: unknown): Extract<ProviderOrderState, { state: 'rejected' }> {
  if (!(error instanceof EsimAccessRefusal)) throw error;
  const failure = failureOf(error.code);
  if (failure === null) throw new ProviderOutcomeUnknown(error);
  return { state: 'rejected', failure };
}

function toOrderFields(order: ProviderOrderRequest): object {
  const { reference, upstreamPackageId, quantity, days } = order;
  const line = {
    packageCode: upstreamPackageId,
    count: quantity,
    ...(days === null ? {} : { periodNum: days }),
  };
  const unitCost = statedCost(order);
  if (unitCost === null) return { transactionId: reference, packageInfoList: [line] };
  const price = toWirePrice(unitCost);
  return { transactionId: reference, amount: price * quantity, packageInfoList: [{ ...line, price }] };
}

function inProgress(): ProviderOrderState {
  return { state: 'in_progress', checkAfterMs: LOOK_AGAIN_MS };
}

export const TAKEN_BACK: ProviderFailure = {
  code: 'provider_rejected',
  reason: 'The wholesaler canceled eSIMs of the order.',
};

/** Whether the pass has fewer days than were bought (D60). */
function hasTooFewDays({ totalDays }: QueriedEsim, days: number | null): boolean {
  return days !== null && totalDays !== null && totalDays < days;
}

/**
 * An order's eSIMs, given in wire format, as support sees them before it ends the order by hand. One with too few days is
 * unusable.
 */
function toParts(values: readonly unknown[], days: number | null): ProviderOrderParts {
  const profiles: ProviderProfile[] = [];
  let running = 0;
  let unusable = 0;
  let failure: ProviderFailure | null = null;
  for (const value of values) {
    const part = usableOrNull(() => toPart(value, days));
    if (part === null) unusable += 1;
    else if (part === 'running') running += 1;
    else if (part === 'taken_back') failure = TAKEN_BACK;
    else profiles.push(part);
  }
  return { profiles, running, unusable, failure };
}

/** The provider is still creating all eSIMs of the order. */
export function allocating(quantity: number): ProviderOrderParts {
  return { profiles: [], running: quantity, unusable: 0, failure: null };
}

/**
 * Checks the status first: while an eSIM is being created, its other fields may hold anything.
 * @throws ProviderResponseInvalid
 */
function toPart(value: unknown, days: number | null): ProviderProfile | 'running' | 'taken_back' {
  const esimStatus = usableOrNull(() => textAt(asObject(value, 'esim'), 'esimStatus')) ?? '';
  const statuses = { esimStatus, smdpStatus: '' };
  const status = statusOf(statuses);
  // A missing status, or one that the contract does not name, does not say what comes next.
  if (status === null || isAllocating(statuses)) return 'running';
  if (status === 'canceled') return 'taken_back';
  const esim = toQueriedEsim(value);
  if (hasTooFewDays(esim, days)) throw new ProviderResponseInvalid('totalDuration');
  return toProfile(esim);
}
