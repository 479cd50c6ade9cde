import type { Logger } from 'pino';
import type {
  LiveProvider,
  PackageList,
  ProviderHint,
  ProviderPurchase,
  ProviderUsageReport,
  SoldList,
} from '../live-provider.js';
import type {
  Placement,
  ProviderCancelRequest,
  ProviderCancelState,
  ProviderCancelStatus,
  ProviderCost,
  ProviderEsimRef,
  ProviderOrderParts,
  ProviderOrderRequest,
  ProviderOrderState,
  ProviderTopupRequest,
  ProviderTopupState,
} from '../esim-provider.js';
import { lookupTimeout, type PlacementGuard, type ProviderHttpClient } from '../http/index.js';
import { REPEATS, ZenditApi } from './zendit-api.js';
import { findCancelStatuses, ZenditCanceling } from './zendit-cancellation.js';
import { ZenditCatalog } from './zendit-catalog.js';
import { ZenditEsimReader } from './zendit-map-usage.js';
import { findParts, listPurchases } from './zendit-order-parts.js';
import { type PurchaseBatch, type PurchaseState, ZenditPurchasing } from './zendit-purchasing.js';
import { orderReferenceOf, ZenditSoldList } from './zendit-sold-list.js';

interface ZenditOptions {
  readonly client: Pick<ProviderHttpClient, 'request'>;
  readonly apiKey: string;
  readonly guard: PlacementGuard;
  readonly timeoutMs: number;
  readonly readLagMs: number;
  readonly catalogTimeoutMs?: number;
  readonly logger: Pick<Logger, 'warn' | 'error'>;
}

const CATALOG_TIMEOUT_MS = 300_000;
const CHECK_AFTER_MS = 2_000;
/** Polling a large order takes one slot per eSIM, so it is polled less often. */
const CHECK_AFTER_MS_PER_ESIM = 250;
const READ_BATCH_SIZE = 8;

/** Zendit (docs/providers.md): one purchase per eSIM with a transactionId that we choose, and no usage callbacks. */
export class ZenditProvider implements LiveProvider {
  readonly name = 'zendit';
  readonly timeoutMs: number;
  readonly readLagMs: number;
  readonly repeats = REPEATS;
  /**
   * One call per eSIM, so a batch takes one second at 8 requests/s. 100,000 eSIMs take 100,000 / 8 = 12,500 s or 3 h 28
   * min without other calls, and 7 h when others use half of the slots. The poller therefore reads eSIMs in use before
   * dormant ones.
   */
  readonly usageBatchSize = READ_BATCH_SIZE;

  readonly catalogTimeoutMs: number;
  readonly soldList: SoldList;
  /** Zendit sells the same offers for new and existing eSIMs, and does not say which fit. */
  readonly listTopupsFor = null;
  /** Zendit has no such calls. */
  readonly controlEsim = null;

  private readonly api: ZenditApi;
  private readonly purchasing: ZenditPurchasing;
  private readonly canceling: ZenditCanceling;
  private readonly catalog: ZenditCatalog;
  private readonly reader: ZenditEsimReader;

  constructor(options: ZenditOptions) {
    this.timeoutMs = options.timeoutMs;
    this.readLagMs = options.readLagMs;
    this.api = new ZenditApi(options);
    this.purchasing = new ZenditPurchasing(this.api, options.logger);
    this.canceling = new ZenditCanceling(this.api);
    this.catalogTimeoutMs = options.catalogTimeoutMs ?? CATALOG_TIMEOUT_MS;
    this.catalog = new ZenditCatalog(this.api, options.logger, this.catalogTimeoutMs);
    this.reader = new ZenditEsimReader(this.api, options.logger);
    this.soldList = new ZenditSoldList(this.api);
  }

  async placeOrder(
    request: ProviderOrderRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState> {
    return toOrderState(await this.purchasing.place(orderBatch(request), placement, signal));
  }

  async findOrder(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState | null> {
    const states = await this.purchasing.find(orderBatch(request), signal);
    const known = states.filter((state) => state !== null);
    return known.length < states.length ? null : toOrderState(known);
  }

  findParts(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderParts> {
    return findParts(this.api, orderBatch(request).transactionIds, lookupTimeout(signal, this.timeoutMs));
  }

  cancelOrder(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState> {
    return this.canceling.cancel(request, signal);
  }

  findCancelStatuses(
    { esims }: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<readonly ProviderCancelStatus[]> {
    return findCancelStatuses(this.api, esims, lookupTimeout(signal, this.timeoutMs));
  }

  async placeTopup(
    request: ProviderTopupRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderTopupState> {
    const [state] = await this.purchasing.place(topupBatch(request), placement, signal);
    return toTopupState(state!);
  }

  async findTopup(
    request: ProviderTopupRequest,
    signal: AbortSignal,
    purpose: 'topup' | 'poll' = 'topup',
  ): Promise<ProviderTopupState | null> {
    const [state] = await this.purchasing.find({ ...topupBatch(request), purpose }, signal);
    return state ? toTopupState(state) : null;
  }

  /** One call per eSIM. Every purchase can be looked up by id, so the time of placement does not matter. */
  async listPurchases(
    order: ProviderOrderRequest,
    _placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]> {
    return listPurchases(this.api, orderBatch(order).transactionIds, signal);
  }

  fetchUsage(
    esims: readonly ProviderEsimRef[],
    signal: AbortSignal,
  ): Promise<readonly ProviderUsageReport[]> {
    return this.reader.readAll(esims, signal);
  }

  listPackages(): readonly PackageList[] {
    return [this.catalog];
  }

  getBalance(signal: AbortSignal): Promise<ProviderCost> {
    return this.api.getBalance(signal);
  }

  hintsOf(callbackBody: unknown): readonly ProviderHint[] {
    return hintsOf(callbackBody);
  }
}

function orderBatch(request: ProviderOrderRequest): PurchaseBatch {
  return {
    transactionIds: Array.from({ length: request.quantity }, (_, i) =>
      purchaseIdOf(request.reference, i + 1),
    ),
    reference: request.reference,
    offerId: request.upstreamPackageId,
    iccid: null,
    purpose: 'order',
    unitCost: request.unitCost,
  };
}

function topupBatch(request: ProviderTopupRequest): PurchaseBatch {
  return {
    transactionIds: [request.reference],
    reference: request.reference,
    offerId: request.upstreamPackageId,
    iccid: request.esim.iccid,
    purpose: 'topup',
    unitCost: request.unitCost,
  };
}

function toOrderState(states: readonly PurchaseState[]): ProviderOrderState {
  if (states.some(({ state }) => state === 'running'))
    return { state: 'in_progress', checkAfterMs: CHECK_AFTER_MS + states.length * CHECK_AFTER_MS_PER_ESIM };
  const profiles = states.flatMap((one) => (one.state === 'done' && one.profile ? [one.profile] : []));
  const failures = states.flatMap((one) => (one.state === 'failed' ? [one.failure] : []));
  if (profiles.length === 0) return { state: 'rejected', failure: failures[0]! };
  const actualCosts = states.flatMap((one) =>
    one.state === 'done' && one.actualCost ? [one.actualCost] : [],
  );
  const actualCost = actualCosts[0] ?? null;
  return { state: 'provisioned', profiles, shortfall: failures[0] ?? null, actualCost };
}

function toTopupState(one: PurchaseState): ProviderTopupState {
  switch (one.state) {
    case 'running':
      return { state: 'in_progress', checkAfterMs: CHECK_AFTER_MS };
    case 'failed':
      return { state: 'rejected', failure: one.failure };
    case 'done':
      // A purchase shows what it added. The next reading shows the eSIM's totals.
      return { state: 'completed', totalBytes: null, expiresAt: null, actualCost: one.actualCost };
  }
}

const TRANSACTION_ID = /^[\w-]{1,128}$/;

/** The purchase id of an order's `number`-th eSIM, counted from 1: one eSIM is one purchase. */
function purchaseIdOf(reference: string, number: number): string {
  return `${reference}-${number}`;
}

/** A webhook's body is a purchase. Its id is `<order>-<i>`, or a top-up's reference. Never throws. */
function hintsOf(callbackBody: unknown): readonly ProviderHint[] {
  if (typeof callbackBody !== 'object' || callbackBody === null) return [];
  const { transactionId } = callbackBody as { readonly transactionId?: unknown };
  if (typeof transactionId !== 'string' || !TRANSACTION_ID.test(transactionId)) return [];
  return [{ about: 'order', reference: orderReferenceOf(transactionId) }];
}
