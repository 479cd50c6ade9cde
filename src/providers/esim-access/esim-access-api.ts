import type { Logger } from 'pino';
import { ProviderOutcomeUnknown, ProviderUnavailable } from '../esim-provider.js';
import {
  type AnswerObject,
  asObject,
  textOrNullAt,
  type UpstreamAnswer,
  UpstreamAnswerInvalid,
  type UpstreamClient,
  type UpstreamPurpose,
  valueAt,
} from '../upstream/index.js';
import { CODES, EsimAccessRefusal, meaningOf } from './refusal.js';
import { type EsimAccessCredentials, signedHeaders } from './request-signature.js';

export const ESIM_ACCESS = 'esim_access';

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
    private readonly logger: Pick<Logger, 'error' | 'warn'>,
  ) {}

  /**
   * Answers `obj`, an empty object when there is none.
   * @throws EsimAccessRefusal for business errors; ProviderUnavailable when it is busy or does not take our calls.
   * @throws ProviderOutcomeUnknown when the answer does not say what happened.
   */
  async call(operation: string, fields: object, options: CallOptions): Promise<AnswerObject> {
    const body = JSON.stringify(fields);
    const answer = await this.client.request({
      method: 'POST',
      path: `/api/v1/open/${operation}`,
      headers: () => signedHeaders(this.credentials, body),
      body,
      ...options,
    });
    this.checkStatus(answer, operation);
    const envelope = asObject(answer.json, 'envelope');
    if (isSuccess(envelope)) return asObject(valueAt(envelope, 'obj') ?? {}, 'obj');
    throw this.errorOf(codeOf(envelope), operation);
  }

  private checkStatus({ status }: UpstreamAnswer, operation: string): void {
    if (status === 200) return;
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

/** The six digits of the error; some come only inside the text, as in `[310241] base data plan ...`. */
function codeOf(envelope: AnswerObject): string {
  const code = valueAt(envelope, 'errorCode');
  if (typeof code === 'string' && /^\d{6}$/.test(code)) return code;
  const text = textOrNullAt(envelope, 'errorMsg') ?? textOrNullAt(envelope, 'errorMessage') ?? '';
  const inText = /^\[(\d{6})\]/.exec(text)?.[1];
  if (inText === undefined) throw new UpstreamAnswerInvalid('errorCode');
  return inText;
}
