import { ERROR_CATALOG, type ErrorCode } from './error-catalog.js';

/** One invalid field: `pointer` is an RFC 6901 pointer into the body, or `?name` for the query. */
export interface FieldError {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

export interface AppErrorOptions {
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  /** Extra response headers, e.g. `Retry-After` or `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/**
 * A refusal with a code of the catalog; the only error whose text reaches a client. `detail` is prose for the caller
 * and never repeats submitted values or secrets (D6).
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors: readonly FieldError[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(`${code}: ${options.detail ?? ERROR_CATALOG[code].advice}`, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.detail = options.detail ?? ERROR_CATALOG[code].advice;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERROR_CATALOG[this.code].status;
  }
}

/** The one 404 for an object that does not exist, belongs to another partner, or to the other mode (D14). */
export class NotFound extends AppError {
  /** `detail` names the missing object, and never whether another partner has it. */
  constructor(detail?: string) {
    super('not_found', detail === undefined ? {} : { detail });
  }
}

/** 400 `validation_failed` with one entry per invalid field (D9). */
export class ValidationFailed extends AppError {
  constructor(errors: readonly FieldError[]) {
    super('validation_failed', {
      detail: describe(errors),
      errors,
    });
  }
}

function describe(errors: readonly FieldError[]): string {
  const fields = new Set(errors.map(({ pointer }) => pointer)).size;
  return fields === 1
    ? 'One field is invalid. Correct the field listed in `errors`.'
    : `${fields} fields are invalid. Correct the fields listed in \`errors\`.`;
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/** The one error body (RFC 9457, D6). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly request_id: string;
  readonly retryable: boolean;
  readonly errors?: readonly FieldError[];
}

/** The response body for `error` in the call `requestId`. */
export function toProblem(error: AppError, requestId: string): Problem {
  const entry = ERROR_CATALOG[error.code];
  return {
    type: `urn:partner-esim:problem:${error.code}`,
    title: entry.title,
    status: entry.status,
    code: error.code,
    detail: error.detail,
    request_id: requestId,
    retryable: entry.retryable,
    ...(error.errors ? { errors: error.errors } : {}),
  };
}
