import type { CodesOf } from './generated/operations.gen.js';
import type { ErrorCode, FieldProblem } from './types.js';

export type { CodesOf };

/** Details of the call, attached to every error of this package. */
export interface CallFacts {
  readonly method: string;
  /** Address of the API: `https://api.example.com`. */
  readonly baseUrl: string;
  readonly path: string;
  /** Mode of the API key, which only sees objects of this mode. Null for a key of another form. */
  readonly mode: 'sandbox' | 'live' | null;
  /** Shared by all tries of a POST. Repeating the call with this key is safe, because it takes effect at most once. */
  readonly idempotencyKey: string | null;
  /** Number of times the call was sent. */
  readonly tries: number;
  /**
   * Covers all tries, not only the last one: true if a try may have reached the service and no response proves that it
   * had no effect. While this is true, a POST may have taken effect, whatever the error says. Repeat it only with the
   * same key. A refusal that the service stores under the key (402, 404, 409) makes it false.
   */
  readonly mayHaveArrived: boolean;
}

interface Refusal {
  readonly code: ErrorCode;
  readonly status: number;
  readonly detail: string;
  readonly errors: readonly FieldProblem[];
  readonly requestId: string;
  readonly retryable: boolean;
}

const MODE_NAMES = { sandbox: 'Sandbox', live: 'Live' } as const;

const callText = ({ method, baseUrl, path }: CallFacts): string => `${method} ${baseUrl}${path}`;

/** Advice after a lost response. A POST that may have taken effect must not be sent with a new key. */
function adviceFor({ mayHaveArrived, idempotencyKey }: CallFacts): string {
  if (!mayHaveArrived)
    return 'Nothing was sent. Check that baseUrl is correct and that the service is running there.';
  return idempotencyKey === null
    ? 'Try again later.'
    : 'The call may have taken effect. Repeat it with the same idempotencyKey, which is in error.call.';
}

/** The service refused the call. `code` is the reason. */
export class EsimApiError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'EsimApiError';
  readonly code: Code;
  readonly status: number;
  /** Text for people. It may change. */
  readonly detail: string;
  readonly errors: readonly FieldProblem[];
  /** Quote this id when you contact support. */
  readonly requestId: string;
  /** Whether the same call with the same key may succeed later. */
  readonly retryable: boolean;

  constructor(
    refusal: Refusal,
    readonly call: CallFacts,
  ) {
    const { status, code, detail, errors, requestId } = refusal;
    // The detail only states how many fields are invalid, so add the fields.
    const said = [detail, ...errors.map((each) => `${each.pointer}: ${each.message}`)].join(' ');
    const key = call.mode === null ? '' : ` with a ${MODE_NAMES[call.mode]} key`;
    super(`${status} ${code}: ${said} (${callText(call)}${key}, request ${requestId})`);
    this.code = code as Code;
    this.status = status;
    this.detail = detail;
    this.errors = errors;
    this.requestId = requestId;
    this.retryable = refusal.retryable;
  }
}

/** No response from the service: no connection, a timeout, a truncated body, or a response from a proxy in between. */
export class EsimConnectionError extends Error {
  override readonly name = 'EsimConnectionError';
  /** Same as `call.mayHaveArrived`: false only if no try can have had an effect. */
  readonly mayHaveArrived: boolean;

  constructor(
    /** Why there is no response, for people: `the connection failed: connect ECONNREFUSED 127.0.0.1:3000`. */
    readonly reason: string,
    readonly call: CallFacts,
    options?: { readonly cause: unknown },
  ) {
    super(`${callText(call)}: ${reason}. ${adviceFor(call)}`, options);
    this.mayHaveArrived = call.mayHaveArrived;
  }
}

/**
 * Whether the service refused the call. With codes, whether it refused with one of them; TypeScript then narrows
 * `code`.
 */
export function isApiError(error: unknown): error is EsimApiError;
export function isApiError<Code extends ErrorCode>(
  error: unknown,
  ...codes: readonly [Code, ...Code[]]
): error is EsimApiError<Code>;
export function isApiError(error: unknown, ...codes: readonly ErrorCode[]): error is EsimApiError {
  if (!(error instanceof EsimApiError)) return false;
  const { code } = error as EsimApiError;
  return codes.length === 0 || codes.includes(code);
}
