import type { CodesOf } from './generated/operations.gen.js';
import type { ErrorCode, FieldProblem } from './types.js';

export type { CodesOf };

/** Facts about the call in every error of this package. */
export interface CallFacts {
  readonly method: string;
  /** Where the API is: `https://api.example.com`. */
  readonly baseUrl: string;
  readonly path: string;
  /** Of the API key: it sees the objects of this mode only. Null for a key of another form. */
  readonly mode: 'sandbox' | 'live' | null;
  /** The key of all tries of a POST: with it the call can be made again, and takes effect once. */
  readonly idempotencyKey: string | null;
  /** How often the call was sent. */
  readonly tries: number;
  /**
   * Over all tries, not the last alone: one may have reached the service, and no answer says that it did nothing. While
   * this is true a POST may have taken effect, whatever the error says: it goes again with the same key, or not at all.
   * A refusal that the service keeps under the key (402, 404, 409) makes it false.
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

/** Advice after a lost response: a POST that may have taken effect must not be made anew. */
function adviceFor({ mayHaveArrived, idempotencyKey }: CallFacts): string {
  if (!mayHaveArrived)
    return 'Nothing was sent. Check that baseUrl is correct and that the service is running there.';
  return idempotencyKey === null
    ? 'Try again later.'
    : 'The call may have taken effect. Repeat it with the same idempotencyKey, which is in error.call.';
}

/** The service refused the call; `code` says why. */
export class EsimApiError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'EsimApiError';
  readonly code: Code;
  readonly status: number;
  /** Prose for people; it may change. */
  readonly detail: string;
  readonly errors: readonly FieldProblem[];
  /** To be quoted to support. */
  readonly requestId: string;
  /** The same call with the same key may succeed later. */
  readonly retryable: boolean;

  constructor(
    refusal: Refusal,
    readonly call: CallFacts,
  ) {
    const { status, code, detail, errors, requestId } = refusal;
    // The detail only counts the fields that are wrong.
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

/** No answer of the service came: no connection, a time-out, half a body, or the answer of something in between. */
export class EsimConnectionError extends Error {
  override readonly name = 'EsimConnectionError';
  /** As `call.mayHaveArrived`: false only when no try of the call can have done anything. */
  readonly mayHaveArrived: boolean;

  constructor(
    /** Why there is no answer, for people: `the connection failed: connect ECONNREFUSED 127.0.0.1:3000`. */
    readonly reason: string,
    readonly call: CallFacts,
    options?: { readonly cause: unknown },
  ) {
    super(`${callText(call)}: ${reason}. ${adviceFor(call)}`, options);
    this.mayHaveArrived = call.mayHaveArrived;
  }
}

/** Whether the service refused the call; with codes, with one of these, and TypeScript knows which. */
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
