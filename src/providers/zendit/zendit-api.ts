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
  /** Set to put a plan on an existing eSIM. */
  readonly iccid?: string;
}

/** What a POST was answered. A refused one certainly had no effect, unless its id was known before. */
export type PostAnswer =
  | { readonly accepted: true; readonly progress: ZenditProgress }
  | { readonly accepted: false; readonly refusal: ZenditRefusal };

const NOT_SAID = 'API reference, POST: nothing is said of a transactionId that was used before';

/** What the documentation says of a repeated call. */
export const REPEATS: Readonly<Record<PlacementOperation, RepeatPolicy>> = {
  order: { repeat: 'undocumented', source: NOT_SAID },
  topup: { repeat: 'undocumented', source: NOT_SAID },
  cancel: {
    repeat: 'undocumented',
    source: 'API reference, POST refund: nothing is said of a second one of a purchase',
  },
};

/** What one POST is for. */
export interface ZenditPlacement {
  readonly operation: PlacementOperation;
  /** Of the purchase. */
  readonly transactionId: string;
  /** Of our order or top-up. */
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

/** A page of offers, and how long it may take. */
export interface OfferPage {
  readonly limit: number;
  readonly offset: number;
  readonly timeoutMs: number;
}

/** Statuses with which Zendit says that it has no such thing, where it names a code. */
const UNKNOWN: readonly number[] = [404];
/** Of a refund that nobody asked for no document says how it is answered; the official PHP SDK knows 400 and no 404. */
const NO_REFUND: readonly number[] = [400, 404];
/** `/esim/{iccId}/plans` documents 400 and no 404. */
const UNKNOWN_ICCID: readonly number[] = [400, 404];
/** Nothing was done, where Zendit itself says so. */
const REFUSED_UNDONE: readonly number[] = [401, 403, 429];
const REFUSED: readonly number[] = [400, 404, 409, 422];
const BUSY_RETRY_MS = 1_000;
const BROKEN_RETRY_MS = 5_000;
/** Somebody has to change a key or the provider's list of addresses. */
const NOT_AUTHORIZED_RETRY_MS = 60_000;

/** A look was answered with a status that says nothing of what was looked for. */
export class ZenditStatus extends ProviderUnavailable {
  constructor(readonly status: number) {
    super(BROKEN_RETRY_MS, new Error(`status ${status}`));
  }
}

/**
 * The calls of the Zendit API, one method each (docs/providers.md).
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

  /** @throws RepeatLimitReached, a ProviderUnavailable, when it may have taken effect twice before */
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

  /** Where the refund of a purchase stands, asked for by itself; null when there is none. */
  async findRefund(transactionId: string, signal: AbortSignal): Promise<ZenditProgress | null> {
    const path = `${purchasePath(transactionId)}/refund`;
    const answer = await this.get(path, 'order', signal, { meansNone: NO_REFUND });
    return answer && readProgress(answer);
  }

  /** @throws RepeatLimitReached, a ProviderUnavailable, when it may have taken effect twice before */
  postRefund(transactionId: string, reference: string, signal: AbortSignal): Promise<PostAnswer> {
    return this.post(
      { operation: 'cancel', transactionId, reference },
      { path: `${purchasePath(transactionId)}/refund`, purpose: 'order', signal, body: {} },
    );
  }

  /** The plans of an ICCID; null when Zendit does not know it, which it says with a 400 too. */
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

  /** Purchases made at or after `since`, as the wire has them, and how many there are. */
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
    // An answer of something in between is no word of the provider: only its own 404 lets a purchase be placed.
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
      // A refusal that may be about an id that was used before says nothing of the first placement.
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

  /** @throws ProviderUnavailable for a key or an address that is not let in, and for a limit. */
  private async call({ body, ...call }: Call): Promise<ProviderHttpResponse> {
    const answer = await this.options.client.request({
      ...call,
      headers: {
        authorization: `Bearer ${this.options.apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // What something in between says of a placement may come after its effect.
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

/** Zendit's own refusals name a code; a proxy's or a gateway's JSON does not, or repeats its status as a number. */
function isZenditsWord({ status, json }: ProviderHttpResponse): boolean {
  const body = typeof json === 'object' && json !== null ? (json as ResponseObject) : {};
  return valueAt(body, 'errorCode') !== status && codeAt(body, 'errorCode') !== null;
}
