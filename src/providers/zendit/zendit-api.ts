import type { Logger } from 'pino';
import { ProviderOutcomeUnknown, ProviderUnavailable, type UpstreamCost } from '../esim-provider.js';
import {
  type AnswerObject,
  asObject,
  type UpstreamAnswer,
  UpstreamAnswerInvalid,
  type UpstreamClient,
  type UpstreamPurpose,
} from '../upstream/index.js';
import { moneyAt } from './zendit-money.js';
import { readProgress, readPurchase, type ZenditProgress, type ZenditPurchase } from './zendit-purchase.js';
import { readRefusal, type ZenditRefusal } from './zendit-refusal.js';

export interface ZenditApiOptions {
  readonly client: Pick<UpstreamClient, 'request'>;
  readonly apiKey: string;
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

interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly purpose: UpstreamPurpose;
  readonly signal: AbortSignal;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

/** A page of offers, and how long it may take. */
export interface OfferPage {
  readonly limit: number;
  readonly offset: number;
  readonly timeoutMs: number;
}

const REFUSED: readonly number[] = [400, 404, 409, 422];
const BUSY_RETRY_MS = 1_000;
const BROKEN_RETRY_MS = 5_000;
/** Somebody has to change a key or the wholesaler's list of addresses. */
const NOT_AUTHORIZED_RETRY_MS = 60_000;

/**
 * The calls of the Zendit API, one method each (esim.md, 3.2).
 * Every method @throws ProviderUnavailable, ProviderOutcomeUnknown
 */
export class ZenditApi {
  constructor(private readonly options: ZenditApiOptions) {}

  /** Null when Zendit does not know the purchase. */
  async findPurchase(
    transactionId: string,
    purpose: UpstreamPurpose,
    signal: AbortSignal,
  ): Promise<ZenditPurchase | null> {
    const answer = await this.get(purchasePath(transactionId), purpose, signal);
    return answer && readPurchase(answer, transactionId);
  }

  postPurchase(body: PurchaseBody, purpose: UpstreamPurpose, signal: AbortSignal): Promise<PostAnswer> {
    return this.post({ path: '/esim/purchases', purpose, signal, body });
  }

  /** Where the refund of a purchase stands; null when there is none. */
  async findRefund(
    transactionId: string,
    signal: AbortSignal,
    purpose: UpstreamPurpose = 'order',
  ): Promise<ZenditProgress | null> {
    const answer = await this.get(`${purchasePath(transactionId)}/refund`, purpose, signal);
    return answer && readProgress(answer);
  }

  postRefund(transactionId: string, signal: AbortSignal): Promise<PostAnswer> {
    return this.post({ path: `${purchasePath(transactionId)}/refund`, purpose: 'order', signal, body: {} });
  }

  /** The plans of an ICCID; null when Zendit does not know it. */
  findPlans(
    iccid: string,
    signal: AbortSignal,
    purpose: UpstreamPurpose = 'poll',
  ): Promise<AnswerObject | null> {
    return this.get(`/esim/${encodeURIComponent(iccid)}/plans`, purpose, signal);
  }

  async getOffers({ limit, offset, timeoutMs }: OfferPage, signal: AbortSignal): Promise<AnswerObject> {
    const path = `/esim/offers?_limit=${limit}&_offset=${offset}`;
    const answer = await this.get(path, 'catalog', signal, timeoutMs);
    if (!answer) throw new UpstreamAnswerInvalid('list');
    return answer;
  }

  async getBalance(signal: AbortSignal): Promise<UpstreamCost> {
    const answer = await this.get('/balance', 'probe', signal);
    if (!answer) throw new UpstreamAnswerInvalid('availableBalance');
    return moneyAt(answer, 'availableBalance');
  }

  private async get(
    path: string,
    purpose: UpstreamPurpose,
    signal: AbortSignal,
    timeoutMs?: number,
  ): Promise<AnswerObject | null> {
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const answer = await this.call({ method: 'GET', path, purpose, signal, ...limit });
    if (answer.status < 300) return asObject(answer.json);
    // An answer of something in between is no word of the wholesaler: only its own 404 lets a purchase be placed.
    if (answer.status === 404 && hasErrorCode(answer.json)) return null;
    throw new ProviderUnavailable(BROKEN_RETRY_MS, new Error(`status ${answer.status}`));
  }

  private async post(call: Omit<Call, 'method'>): Promise<PostAnswer> {
    const answer = await this.call({ ...call, method: 'POST' });
    if (answer.status < 300) return { accepted: true, progress: readProgress(asObject(answer.json)) };
    if (hasErrorCode(answer.json) && REFUSED.includes(answer.status))
      return { accepted: false, refusal: readRefusal(answer.status, answer.json) };
    throw new ProviderOutcomeUnknown(new Error(`status ${answer.status}`));
  }

  /** @throws ProviderUnavailable for a key or an address that is not let in, and for a limit. */
  private async call({ body, ...call }: Call): Promise<UpstreamAnswer> {
    const answer = await this.options.client.request({
      ...call,
      headers: {
        authorization: `Bearer ${this.options.apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status === 401 || answer.status === 403) {
      this.options.logger.error({
        event: 'upstream.not_authorized',
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

/** Zendit's own refusals name a code; a proxy's or a gateway's JSON does not. */
function hasErrorCode(json: unknown): boolean {
  const code = (json as { errorCode?: unknown } | null | undefined)?.errorCode;
  return typeof code === 'string' && code !== '';
}
