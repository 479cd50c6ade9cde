import type { Logger } from 'pino';
import {
  type PlacementOperation,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type RepeatPolicy,
} from '../esim-provider.js';
import {
  type AnswerObject,
  asObject,
  type PlacementGuard,
  type PlacementPermit,
  textOrNullAt,
  type UpstreamAnswer,
  UpstreamAnswerInvalid,
  type UpstreamClient,
  type UpstreamPurpose,
  valueAt,
} from '../upstream/index.js';
import { CODES, EsimAccessRefusal, failureOf, meaningOf } from './refusal.js';
import { type EsimAccessCredentials, signedHeaders } from './request-signature.js';

export const ESIM_ACCESS = 'esim_access';

/** Calls that only ask. */
export type QueryOperation = 'balance/query' | 'esim/query' | 'esim/usage/query' | 'package/list';

export interface EsimAccessPlacement {
  readonly operation: PlacementOperation;
  /** The transactionId, or the esimTranNo that is taken back. */
  readonly key: string;
  /** Of our order or top-up. */
  readonly reference: string;
}

/** What the documentation of the open API says of a repeated call. */
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

const PATHS: Readonly<Record<PlacementOperation, string>> = {
  order: 'esim/order',
  topup: 'esim/topup',
  cancel: 'esim/cancel',
};

export interface CallOptions {
  readonly purpose: UpstreamPurpose;
  readonly signal: AbortSignal;
  /** For a long list. */
  readonly timeoutMs?: number;
}

const RETRY_BUSY_MS = 1_000;
const RETRY_SETUP_MS = 60_000;

/** Calls of the open API: signed, and with the envelope read. */
export class EsimAccessApi {
  constructor(
    private readonly client: UpstreamClient,
    private readonly credentials: EsimAccessCredentials,
    private readonly guard: PlacementGuard,
    private readonly logger: Pick<Logger, 'error' | 'warn'>,
  ) {}

  /**
   * Answers `obj`, an empty object when there is none.
   * @throws EsimAccessRefusal for business errors; ProviderUnavailable when it is busy or does not take our calls.
   * @throws ProviderOutcomeUnknown when the answer does not say what happened.
   */
  call(operation: QueryOperation, fields: object, options: CallOptions): Promise<AnswerObject> {
    return this.exchange(operation, 'none', fields, options);
  }

  /**
   * As `call`, for what buys, tops up or takes back.
   * @throws RepeatLimitReached, a ProviderUnavailable, when it may have taken effect twice before
   */
  place(placement: EsimAccessPlacement, fields: object, options: CallOptions): Promise<AnswerObject> {
    const { operation } = placement;
    return this.guard.run(
      { provider: ESIM_ACCESS, policy: REPEATS[operation], ...placement },
      (permit) => this.exchange(PATHS[operation], permit, fields, options),
      // Refused for certain: nothing was done.
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
  ): Promise<AnswerObject> {
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

  private checkStatus({ status }: UpstreamAnswer, operation: string, effect: 'none' | PlacementPermit): void {
    if (status === 200) return;
    // Its own refusals are 200: what a gateway says of a placement may come after its effect.
    if (effect !== 'none') throw new ProviderOutcomeUnknown(new Error(`HTTP ${status}`));
    if (status === 429) throw new ProviderUnavailable(RETRY_BUSY_MS);
    if (status === 401 || status === 403) throw this.misconfigured(`http_${status}`, operation);
    throw new ProviderOutcomeUnknown(new Error(`HTTP ${status}`));
  }

  private errorOf(code: string, operation: string): Error {
    const meaning = meaningOf(code);
    if (meaning.retryable && meaning.because === 'busy') return new ProviderUnavailable(RETRY_BUSY_MS);
    if (meaning.retryable && meaning.because === 'setup') return this.misconfigured(code, operation);
    // A server error says nothing about how far it came.
    if (code === CODES.server) return new ProviderOutcomeUnknown(new Error(code));
    if (code === CODES.insufficientBalance) {
      // Worth an alert: no order goes through until the account is filled.
      this.logger.error({ event: 'upstream.funds_exhausted', provider: ESIM_ACCESS, operation });
    }
    return new EsimAccessRefusal(code);
  }

  private misconfigured(code: string, operation: string): ProviderUnavailable {
    this.logger.error({ event: 'upstream.misconfigured', provider: ESIM_ACCESS, operation, code });
    return new ProviderUnavailable(RETRY_SETUP_MS, new Error(code));
  }
}

/** The wire has booleans where the tables say text. @throws UpstreamAnswerInvalid */
function isSuccess(envelope: AnswerObject): boolean {
  const success = valueAt(envelope, 'success');
  const code = valueAt(envelope, 'errorCode');
  if (success === true || success === 'true') {
    // Both "0" and null mean that there is no error.
    if (code == null || code === '0' || code === 0 || code === '') return true;
    throw new UpstreamAnswerInvalid('errorCode');
  }
  if (success === false || success === 'false') return false;
  throw new UpstreamAnswerInvalid('success');
}

/**
 * The six digits of the error. Clients have seen texts, numbers (which have lost the zeros in front) and null with the
 * code only inside the text, as in `[310241] base data plan ...`. @throws UpstreamAnswerInvalid without any
 */
function codeOf(envelope: AnswerObject): string {
  const value = valueAt(envelope, 'errorCode');
  const code = typeof value === 'number' && value > 0 ? String(value).padStart(6, '0') : value;
  if (typeof code === 'string' && /^\d{6}$/.test(code)) return code;
  const text = textOrNullAt(envelope, 'errorMsg') ?? textOrNullAt(envelope, 'errorMessage') ?? '';
  const inText = /^\[(\d{6})\]/.exec(text)?.[1];
  if (inText === undefined) throw new UpstreamAnswerInvalid('errorCode');
  return inText;
}
