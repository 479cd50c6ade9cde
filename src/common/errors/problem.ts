import type { AppError, FieldError } from './app-error.js';
import { ERROR_CATALOGUE, type ErrorCode } from './error-catalogue.js';

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
  const entry = ERROR_CATALOGUE[error.code];
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
