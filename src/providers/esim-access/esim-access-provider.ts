import type { Logger } from 'pino';
import { NO_TRACER, type Tracer } from '../../infra/tracing/index.js';
import type {
  LiveProvider,
  PackageList,
  ProviderHint,
  ProviderPackage,
  ProviderPurchase,
  ProviderUsageReport,
  SoldList,
} from '../live-provider.js';
import {
  type EsimControl,
  type EsimControlResult,
  type Placement,
  type ProviderCancelRequest,
  type ProviderCancelState,
  type ProviderCancelStatus,
  type ProviderCost,
  type ProviderEsimRef,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderTopupRequest,
  type ProviderTopupState,
} from '../esim-provider.js';
import {
  CircuitBreaker,
  countAt,
  lookupTimeout,
  type PlacementGuard,
  type ProviderHealthRecorder,
  ProviderHttpClient,
  type ProviderMetrics,
  type ProviderRateLimiter,
} from '../http/index.js';
import { Cancellation } from './cancellation.js';
import { ESIM_ACCESS, EsimAccessApi, type EsimAccessCredentials, REPEATS } from './esim-access-api.js';
import { EsimSearch, PurchaseListing } from './esim-search.js';
import { EsimSoldList } from './esim-sold-list.js';
import { PackageListing, toMicros } from './package-listing.js';
import { EsimReader, READ_BATCH_SIZE } from './map-usage.js';
import { OrderPlacement } from './order-placement.js';
import { EsimAccessRefusal, failureOf } from './refusal.js';
import { TopupPlacement } from './topup-placement.js';

export interface EsimAccessSettings extends EsimAccessCredentials {
  readonly baseUrl: string;
  readonly timeoutMs: number;
  readonly readLagMs: number;
  readonly catalogTimeoutMs?: number;
}

export interface EsimAccessTools {
  readonly pace: ProviderRateLimiter;
  readonly guard: PlacementGuard;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly health?: ProviderHealthRecorder | null;
  readonly breaker?: CircuitBreaker;
  readonly metrics?: ProviderMetrics | null;
  readonly tracer?: Tracer;
}

/** The whole package list with its networks takes a few megabytes. */
const MAX_ANSWER_BYTES = 33_554_432;
const CATALOG_TIMEOUT_MS = 300_000;

/** eSIM Access (RedteaMobile) over its signed HTTP API (docs/providers.md). */
export class EsimAccessProvider implements LiveProvider {
  readonly name = ESIM_ACCESS;
  readonly timeoutMs: number;
  readonly readLagMs: number;
  readonly repeats = REPEATS;
  readonly catalogTimeoutMs: number;
  readonly soldList: SoldList;
  readonly usageBatchSize = READ_BATCH_SIZE;
  private readonly client: ProviderHttpClient;
  private readonly api: EsimAccessApi;
  private readonly orders: OrderPlacement;
  private readonly cancellation: Cancellation;
  private readonly topups: TopupPlacement;
  private readonly reader: EsimReader;
  private readonly purchases: PurchaseListing;
  private readonly packages: PackageListing;

  constructor(settings: EsimAccessSettings, tools: EsimAccessTools) {
    const { pace, guard, logger, health = null, breaker, metrics = null, tracer = NO_TRACER } = tools;
    const { baseUrl, timeoutMs, readLagMs } = settings;
    this.timeoutMs = timeoutMs;
    this.readLagMs = readLagMs;
    this.client = new ProviderHttpClient({
      ...{ provider: ESIM_ACCESS, baseUrl, timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES },
      ...{ pace, logger, health, metrics, tracer, breaker: breaker ?? new CircuitBreaker() },
    });
    this.api = new EsimAccessApi(this.client, settings, guard, logger);
    const search = new EsimSearch(this.api);
    this.orders = new OrderPlacement(this.api, search, logger);
    this.cancellation = new Cancellation(this.api, search);
    this.topups = new TopupPlacement(this.api, search);
    this.reader = new EsimReader(this.api, search, logger);
    this.purchases = new PurchaseListing(search);
    const soldList = new EsimSoldList(search);
    this.soldList = {
      kinds: soldList.kinds,
      readPage: (since, from, signal) => soldList.readPage(since, from, signal).catch(asUnknown),
    };
    this.catalogTimeoutMs = settings.catalogTimeoutMs ?? CATALOG_TIMEOUT_MS;
    this.packages = new PackageListing(this.api, logger, this.catalogTimeoutMs);
  }

  placeOrder(
    request: ProviderOrderRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState> {
    return this.orders.place(request, placement, signal);
  }

  findOrder(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderState | null> {
    return this.orders.find(request, signal);
  }

  findParts(request: ProviderOrderRequest, signal: AbortSignal): Promise<ProviderOrderParts> {
    return this.orders.findParts(request, lookupTimeout(signal, this.timeoutMs));
  }

  cancelOrder(request: ProviderCancelRequest, signal: AbortSignal): Promise<ProviderCancelState> {
    return this.cancellation.cancel(request, signal);
  }

  async controlEsim(
    { action, esim, reference }: EsimControl,
    signal: AbortSignal,
  ): Promise<EsimControlResult> {
    const esimTranNo = esim.providerEsimId;
    try {
      const placement = { operation: action, key: esimTranNo, reference };
      await this.api.place(placement, { esimTranNo }, { purpose: 'order', signal });
      return { state: 'done' };
    } catch (error) {
      const failure = error instanceof EsimAccessRefusal ? failureOf(error.code) : null;
      return failure ? { state: 'refused', failure } : asUnknown(error);
    }
  }

  findCancelStatuses(
    request: ProviderCancelRequest,
    signal: AbortSignal,
  ): Promise<readonly ProviderCancelStatus[]> {
    return this.cancellation.findCancelStatuses(request, lookupTimeout(signal, this.timeoutMs));
  }

  placeTopup(
    request: ProviderTopupRequest,
    placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderTopupState> {
    return this.topups.place(request, placement, signal);
  }

  findTopup(
    request: ProviderTopupRequest,
    signal: AbortSignal,
    purpose?: 'topup' | 'poll',
  ): Promise<ProviderTopupState | null> {
    return this.topups.find(request, signal, purpose);
  }

  listPurchases(
    order: ProviderOrderRequest,
    placedBefore: Date,
    signal: AbortSignal,
  ): Promise<readonly ProviderPurchase[]> {
    return this.purchases.list(order, placedBefore, signal).catch(asUnknown);
  }

  fetchUsage(
    esims: readonly ProviderEsimRef[],
    signal: AbortSignal,
  ): Promise<readonly ProviderUsageReport[]> {
    return this.reader.read(esims, signal).catch(asUnknown);
  }

  listPackages(): readonly PackageList[] {
    return this.packages.lists().map((list) => ({
      ...list,
      readPage: (from, signal) => list.readPage(from, signal).catch(asUnknown),
    }));
  }

  listTopupsFor(baseUpstreamId: string, signal: AbortSignal): Promise<readonly ProviderPackage[]> {
    return this.packages.topupsFor(baseUpstreamId, signal).catch(asUnknown);
  }

  async getBalance(signal: AbortSignal): Promise<ProviderCost> {
    const answer = await this.api.call('balance/query', {}, { purpose: 'probe', signal }).catch(asUnknown);
    return { micros: toMicros(countAt(answer, 'balance')), currency: 'USD' };
  }

  hintsOf(callbackBody: unknown): readonly ProviderHint[] {
    return hintsOf(callbackBody);
  }

  /** Closes the keep-alive connections. */
  close(): Promise<void> {
    return this.client.close();
  }
}

/** A refused read leaves the outcome unknown; the port has no other error for it. */
function asUnknown(error: unknown): never {
  throw error instanceof EsimAccessRefusal ? new ProviderOutcomeUnknown(error) : error;
}

const MAX_REFERENCE_LENGTH = 50;
const ABOUT_ESIMS: readonly unknown[] = ['ESIM_STATUS', 'SMDP_EVENT', 'DATA_USAGE', 'VALIDITY_USAGE'];

/**
 * The objects that an unsigned callback names. It may be late, duplicated, out of order or forged, so only the ids are
 * used. Never throws.
 */
function hintsOf(body: unknown): readonly ProviderHint[] {
  try {
    return read(body);
  } catch {
    return [];
  }
}

function read(body: unknown): readonly ProviderHint[] {
  const { notifyType, content } = body as { notifyType?: unknown; content?: Record<string, unknown> | null };
  if (notifyType === 'CHECK_HEALTH') return [{ about: 'health_check' }];
  if (notifyType === 'ORDER_STATUS') {
    const reference = content?.['transactionId'];
    return isName(reference, /^[A-Za-z0-9_-]+$/) ? [{ about: 'order', reference }] : [];
  }
  if (!ABOUT_ESIMS.includes(notifyType)) return [];
  const providerEsimId = content?.['esimTranNo'];
  return isName(providerEsimId, /^[A-Za-z0-9]+$/) ? [{ about: 'esim', providerEsimId }] : [];
}

function isName(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && value.length <= MAX_REFERENCE_LENGTH && pattern.test(value);
}
