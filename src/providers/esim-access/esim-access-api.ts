import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import {
  type EsimControl,
  type PlacementOperation,
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
  textOrNullAt,
  valueAt,
} from '../http/index.js';
import { CODES, EsimAccessRefusal, failureOf, meaningOf } from './refusal.js';

export const ESIM_ACCESS = 'esim_access';

/** Read-only calls. */
type QueryOperation = 'balance/query' | 'esim/query' | 'esim/usage/query' | 'package/list';

interface EsimAccessPlacement {
  readonly operation: PlacementOperation | EsimControl['action'];
  /** The transactionId, or the esimTranNo to cancel or change. */
  readonly key: string;
  /** Reference of our order or top-up. */
  readonly reference: string;
}

/** How the provider's documentation describes a repeated call. */
export const REPEATS: Readonly<Record<PlacementOperation, RepeatPolicy>> = {
  order: {
    repeat: 'same_request',
    source: 'open API, order profiles: a transactionId that was used before is the same request',
  },
  topup: {
    repeat: 'undocumented',
    source: 'open API, top up: a transactionId is required; nothing is said of one that was used before',
  },
  cancel: {
    repeat: 'undocumented',
    source: 'open API, cancel profile: nothing is said of an eSIM that is canceled twice',
  },
};

/** The eSIM's row records a change before it is sent (D70). */
const NEVER: RepeatPolicy = { repeat: 'never', source: 'open API: nothing is said of a second suspension' };

const POLICIES: Readonly<Record<EsimAccessPlacement['operation'], RepeatPolicy>> = {
  ...REPEATS,
  suspend: NEVER,
  resume: NEVER,
  revoke: NEVER,
};

const PATHS: Readonly<Record<EsimAccessPlacement['operation'], string>> = {
  order: 'esim/order',
  topup: 'esim/topup',
  cancel: 'esim/cancel',
  suspend: 'esim/suspend',
  resume: 'esim/unsuspend',
  revoke: 'esim/revoke',
};

export interface CallOptions {
  readonly purpose: CallPurpose;
  readonly signal: AbortSignal;
  /** Set for long lists. */
  readonly timeoutMs?: number;
}

const RETRY_BUSY_MS = 1_000;
const RETRY_SETUP_MS = 60_000;
/** Maximum wait for a slot inside one poll. If the wait is longer, the call fails and the caller waits. */
const MAX_WAIT_MS = 1_000;
const MAX_WAITS = 10;

/** Client of the open API: signs requests and reads the response envelope. */
export class EsimAccessApi {
  constructor(
    private readonly client: ProviderHttpClient,
    private readonly credentials: EsimAccessCredentials,
    private readonly guard: PlacementGuard,
    private readonly logger: Pick<Logger, 'error' | 'warn'>,
  ) {}

  /**
   * Returns `obj`, or an empty object when there is none.
   * @throws EsimAccessRefusal for business errors; ProviderUnavailable when the provider is busy or rejects our calls
   * @throws ProviderOutcomeUnknown when the response does not say what happened
   */
  call(operation: QueryOperation, fields: object, options: CallOptions): Promise<ResponseObject> {
    return this.exchange(operation, 'none', fields, options);
  }

  /**
   * Like `call`, for purchases, top-ups, cancellations and changes of eSIMs.
   * @throws RepeatLimitReached, a ProviderUnavailable, when the placement may already have taken effect twice
   */
  place(placement: EsimAccessPlacement, fields: object, options: CallOptions): Promise<ResponseObject> {
    const { operation } = placement;
    return this.guard.run(
      { provider: ESIM_ACCESS, policy: POLICIES[operation], ...placement },
      (permit) => this.exchange(PATHS[operation], permit, fields, options),
      // A definite refusal: the provider did nothing.
      (outcome) =>
        'error' in outcome &&
        outcome.error instanceof EsimAccessRefusal &&
        failureOf(outcome.error.code) !== null,
    );
  }

  private async exchange(
    operation: string,
    effect: 'none' | PlacementPermit,
    fields: object,
    options: CallOptions,
  ): Promise<ResponseObject> {
    const body = JSON.stringify(fields);
    const answer = await this.client.request({
      method: 'POST',
      path: `/api/v1/open/${operation}`,
      headers: () => signedHeaders(this.credentials, body),
      body,
      effect,
      ...options,
    });
    this.checkStatus(answer, operation, effect);
    const envelope = asObject(answer.json, 'envelope');
    if (isSuccess(envelope)) return asObject(valueAt(envelope, 'obj') ?? {}, 'obj');
    throw this.errorOf(codeOf(envelope), operation);
  }

  private checkStatus(
    { status }: ProviderHttpResponse,
    operation: string,
    effect: 'none' | PlacementPermit,
  ): void {
    if (status === 200) return;
    // The provider's own refusals have status 200. A gateway's error may come after the placement took effect.
    if (effect !== 'none') throw new ProviderOutcomeUnknown(new Error(`HTTP ${status}`));
    if (status === 429) throw new ProviderUnavailable(RETRY_BUSY_MS);
    if (status === 401 || status === 403) throw this.misconfigured(`http_${status}`, operation);
    throw new ProviderOutcomeUnknown(new Error(`HTTP ${status}`));
  }

  private errorOf(code: string, operation: string): Error {
    const meaning = meaningOf(code);
    if (meaning.retryable && meaning.because === 'busy') return new ProviderUnavailable(RETRY_BUSY_MS);
    if (meaning.retryable && meaning.because === 'setup') return this.misconfigured(code, operation);
    // A server error does not say how far the call got.
    if (code === CODES.server) return new ProviderOutcomeUnknown(new Error(code));
    if (code === CODES.insufficientBalance) {
      // Alert: no order goes through until the account is funded.
      this.logger.error({ event: 'provider.funds_exhausted', provider: ESIM_ACCESS, operation });
    }
    return new EsimAccessRefusal(code);
  }

  private misconfigured(code: string, operation: string): ProviderUnavailable {
    this.logger.error({ event: 'provider.misconfigured', provider: ESIM_ACCESS, operation, code });
    return new ProviderUnavailable(RETRY_SETUP_MS, new Error(code));
  }
}

/** The wire uses booleans where the documented tables say text. @throws ProviderResponseInvalid */
function isSuccess(envelope: ResponseObject): boolean {
  const success = valueAt(envelope, 'success');
  const code = valueAt(envelope, 'errorCode');
  if (success === true || success === 'true') {
    // Both "0" and null mean no error.
    if (code == null || code === '0' || code === 0 || code === '') return true;
    throw new ProviderResponseInvalid('errorCode');
  }
  if (success === false || success === 'false') return false;
  throw new ProviderResponseInvalid('success');
}

/**
 * The six-digit error code. Clients have seen it as text, as a number without its leading zeros, and as null with the
 * code only in the message (`[310241] base data plan ...`). @throws ProviderResponseInvalid when there is none
 */
function codeOf(envelope: ResponseObject): string {
  const value = valueAt(envelope, 'errorCode');
  const code = typeof value === 'number' && value > 0 ? String(value).padStart(6, '0') : value;
  if (typeof code === 'string' && /^\d{6}$/.test(code)) return code;
  const text = textOrNullAt(envelope, 'errorMsg') ?? textOrNullAt(envelope, 'errorMessage') ?? '';
  const inText = /^\[(\d{6})\]/.exec(text)?.[1];
  if (inText === undefined) throw new ProviderResponseInvalid('errorCode');
  return inText;
}

export interface EsimAccessCredentials {
  readonly accessCode: string;
  readonly secretKey: string;
}

interface SignedRequest extends EsimAccessCredentials {
  /** Unix time in milliseconds, as text. */
  readonly timestamp: string;
  readonly requestId: string;
  /** Exactly the bytes that are sent. */
  readonly body: string;
}

/** Lower-case hex HMAC-SHA256 over timestamp, request id, access code and raw body (docs/providers.md). */
export function signEsimAccessRequest(request: SignedRequest): string {
  return createHmac('sha256', request.secretKey)
    .update(request.timestamp + request.requestId + request.accessCode + request.body)
    .digest('hex');
}

/** Headers of a signed call; the timestamp is the current time. */
function signedHeaders(credentials: EsimAccessCredentials, body: string): Record<string, string> {
  const timestamp = String(Date.now());
  const requestId = randomUUID();
  return {
    'content-type': 'application/json',
    'RT-AccessCode': credentials.accessCode,
    'RT-RequestID': requestId,
    'RT-Timestamp': timestamp,
    'RT-Signature': signEsimAccessRequest({ ...credentials, timestamp, requestId, body }),
  };
}

/**
 * Retries a call after short waits. Orders overtake polls at the rate limiter, and that must not end a batch halfway.
 */
export async function retryShortWaits<T>(call: () => Promise<T>, { signal }: CallOptions): Promise<T> {
  for (let waits = 0; ; waits++) {
    try {
      return await call();
    } catch (error) {
      const isShort = error instanceof ProviderUnavailable && error.retryAfterMs < MAX_WAIT_MS;
      if (!isShort || waits >= MAX_WAITS || signal.aborted) throw error;
      await delay(error.retryAfterMs);
    }
  }
}
