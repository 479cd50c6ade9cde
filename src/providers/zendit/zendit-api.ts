import type { Logger } from 'pino';
import {
  type PlacementOperation,
  type ProviderCost,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type RepeatPolicy,
} from '../esim-provider.js';
import {
  asObject,
  type CallPurpose,
  type PlacementGuard,
  type PlacementPermit,
  type ProviderHttpClient,
  type ProviderHttpResponse,
  ProviderResponseInvalid,
  type ResponseObject,
  valueAt,
} from '../http/index.js';
import { codeAt, readRefusal, type ZenditRefusal } from './zendit-errors.js';
import { moneyAt } from './zendit-amounts.js';
import { readProgress, readPurchase, type ZenditProgress, type ZenditPurchase } from './zendit-purchase.js';

export interface ZenditApiOptions {
  readonly client: Pick<ProviderHttpClient, 'request'>;
  readonly apiKey: string;
  readonly guard: PlacementGuard;
  readonly logger: Pick<Logger, 'warn' | 'error'>;
}

export interface PurchaseBody {
  readonly transactionId: string;
  readonly offerId: string;
  /** Set to add a plan to an existing eSIM. */
  readonly iccid?: string;
}

/** Result of a POST. A refused one certainly had no effect, unless its id was already known. */
export type PostAnswer =
  | { readonly accepted: true; readonly progress: ZenditProgress }
  | { readonly accepted: false; readonly refusal: ZenditRefusal };

const NOT_SAID = 'API reference, POST: nothing is said of a transactionId that was used before';

/** How Zendit's documentation describes a repeated call. */
export const REPEATS: Readonly<Record<PlacementOperation, RepeatPolicy>> = {
  order: { repeat: 'undocumented', source: NOT_SAID },
  topup: { repeat: 'undocumented', source: NOT_SAID },
  cancel: {
    repeat: 'undocumented',
    source: 'API reference, POST refund: nothing is said of a second one of a purchase',
  },
};

/** Purpose of one POST. */
export interface ZenditPlacement {
  readonly operation: PlacementOperation;
  /** Id of the purchase. */
  readonly transactionId: string;
  /** Reference of our order or top-up. */
  readonly reference: string;
}

interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly purpose: CallPurpose;
  readonly signal: AbortSignal;
  readonly effect: 'none' | PlacementPermit;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

export interface OfferPage {
  readonly limit: number;
  readonly offset: number;
  readonly timeoutMs: number;
}

/** Statuses that mean Zendit has no such object, if the body names a code. */
const UNKNOWN: readonly number[] = [404];
/** No source documents the response for a refund that does not exist; the official PHP SDK knows 400 and no 404. */
const NO_REFUND: readonly number[] = [400, 404];
/** `/esim/{iccId}/plans` documents 400 and no 404. */
const UNKNOWN_ICCID: readonly number[] = [400, 404];
/** Statuses that mean Zendit did nothing, if the body is its own. */
const REFUSED_UNDONE: readonly number[] = [401, 403, 429];
const REFUSED: readonly number[] = [400, 404, 409, 422];
const BUSY_RETRY_MS = 1_000;
const BROKEN_RETRY_MS = 5_000;
/** An operator has to change a key or the provider's address list. */
const NOT_AUTHORIZED_RETRY_MS = 60_000;

/** A lookup got a status that says nothing about the object. */
export class ZenditStatus extends ProviderUnavailable {
  constructor(readonly status: number) {
    super(BROKEN_RETRY_MS, new Error(`status ${status}`));
  }
}

/**
 * Client of the Zendit API, one method per call (docs/providers.md).
 * Every method @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
export class ZenditApi {
  constructor(private readonly options: ZenditApiOptions) {}

  /** Null when Zendit does not know the purchase. */
  async findPurchase(
    transactionId: string,
    purpose: CallPurpose,
    signal: AbortSignal,
  ): Promise<ZenditPurchase | null> {
    const answer = await this.get(purchasePath(transactionId), purpose, signal);
    return answer && readPurchase(answer, transactionId);
  }

  /** @throws RepeatLimitReached, a ProviderUnavailable, when the placement may already have taken effect twice */
  postPurchase(
    body: PurchaseBody,
    { operation, reference }: Pick<ZenditPlacement, 'operation' | 'reference'>,
    signal: AbortSignal,
  ): Promise<PostAnswer> {
    const { transactionId } = body;
    const purpose = operation === 'topup' ? 'topup' : 'order';
    return this.post(
      { operation, transactionId, reference },
      { path: '/esim/purchases', purpose, signal, body },
    );
  }

  /** Progress of a purchase's refund from its own endpoint; null when there is none. */
  async findRefund(transactionId: string, signal: AbortSignal): Promise<ZenditProgress | null> {
    const path = `${purchasePath(transactionId)}/refund`;
    const answer = await this.get(path, 'order', signal, { meansNone: NO_REFUND });
    return answer && readProgress(answer);
  }

  /** @throws RepeatLimitReached, a ProviderUnavailable, when the refund may already have taken effect twice */
  postRefund(transactionId: string, reference: string, signal: AbortSignal): Promise<PostAnswer> {
    return this.post(
      { operation: 'cancel', transactionId, reference },
      { path: `${purchasePath(transactionId)}/refund`, purpose: 'order', signal, body: {} },
    );
  }

  /** The plans of an ICCID; null when Zendit does not know it, which it may report as a 400. */
  findPlans(
    iccid: string,
    signal: AbortSignal,
    purpose: CallPurpose = 'poll',
  ): Promise<ResponseObject | null> {
    return this.get(`/esim/${encodeURIComponent(iccid)}/plans`, purpose, signal, {
      meansNone: UNKNOWN_ICCID,
    });
  }

  async getOffers({ limit, offset, timeoutMs }: OfferPage, signal: AbortSignal): Promise<ResponseObject> {
    const path = `/esim/offers?_limit=${limit}&_offset=${offset}`;
    const answer = await this.get(path, 'catalog', signal, { timeoutMs });
    if (!answer) throw new ProviderResponseInvalid('list');
    return answer;
  }

  /** Purchases created at or after `since` in wire format, and their total. */
  async listPurchases(
    since: Date,
    { limit, offset }: Pick<OfferPage, 'limit' | 'offset'>,
    signal: AbortSignal,
  ): Promise<ResponseObject> {
    const created = encodeURIComponent(`gte${since.toISOString()}`);
    const path = `/esim/purchases?_limit=${limit}&_offset=${offset}&createdAt=${created}`;
    const answer = await this.get(path, 'poll', signal);
    if (!answer) throw new ProviderResponseInvalid('list');
    return answer;
  }

  async getBalance(signal: AbortSignal): Promise<ProviderCost> {
    const answer = await this.get('/balance', 'probe', signal);
    if (!answer) throw new ProviderResponseInvalid('availableBalance');
    return moneyAt(answer, 'availableBalance');
  }

  private async get(
    path: string,
    purpose: CallPurpose,
    signal: AbortSignal,
    { meansNone = UNKNOWN, timeoutMs }: { meansNone?: readonly number[]; timeoutMs?: number } = {},
  ): Promise<ResponseObject | null> {
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const answer = await this.call({ method: 'GET', path, purpose, signal, effect: 'none', ...limit });
    if (answer.status < 300) return asObject(answer.json);
    // Ignore the response of an intermediary, because only Zendit's own 404 permits a placement.
    if (meansNone.includes(answer.status) && isZenditsWord(answer)) return null;
    throw new ZenditStatus(answer.status);
  }

  private post(
    { operation, transactionId: key, reference }: ZenditPlacement,
    call: Omit<Call, 'method' | 'effect'>,
  ): Promise<PostAnswer> {
    return this.options.guard.run(
      { provider: 'zendit', operation, key, reference, policy: REPEATS[operation] },
      (effect) => this.send({ ...call, effect, method: 'POST' }),
      // A refusal about an id that may have been used before proves nothing about the first placement.
      (outcome) =>
        'value' in outcome && !outcome.value.accepted && outcome.value.refusal.about !== 'transaction',
    );
  }

  private async send(call: Call): Promise<PostAnswer> {
    const answer = await this.call(call);
    if (answer.status < 300) return { accepted: true, progress: readProgress(asObject(answer.json)) };
    if (isZenditsWord(answer) && REFUSED.includes(answer.status))
      return { accepted: false, refusal: readRefusal(answer.status, answer.json) };
    throw new ProviderOutcomeUnknown(new Error(`status ${answer.status}`));
  }

  /** @throws ProviderUnavailable for a rejected key or address, and for a rate limit */
  private async call({ body, ...call }: Call): Promise<ProviderHttpResponse> {
    const answer = await this.options.client.request({
      ...call,
      headers: {
        authorization: `Bearer ${this.options.apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // An intermediary's error may come after the placement took effect.
    if (call.effect !== 'none' && REFUSED_UNDONE.includes(answer.status) && !isZenditsWord(answer))
      throw new ProviderOutcomeUnknown(new Error(`status ${answer.status}`));
    if (answer.status === 401 || answer.status === 403) {
      this.options.logger.error({
        event: 'provider.not_authorized',
        provider: 'zendit',
        status: answer.status,
      });
      throw new ProviderUnavailable(NOT_AUTHORIZED_RETRY_MS);
    }
    if (answer.status === 429) throw new ProviderUnavailable(BUSY_RETRY_MS);
    return answer;
  }
}

function purchasePath(transactionId: string): string {
  return `/esim/purchases/${encodeURIComponent(transactionId)}`;
}

/** Zendit's own refusals name a code. The JSON of a proxy or gateway does not, or repeats its status as a number. */
function isZenditsWord({ status, json }: ProviderHttpResponse): boolean {
  const body = typeof json === 'object' && json !== null ? (json as ResponseObject) : {};
  return valueAt(body, 'errorCode') !== status && codeAt(body, 'errorCode') !== null;
}
