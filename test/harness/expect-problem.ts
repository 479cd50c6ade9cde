import { expect } from 'vitest';
import { ERROR_CATALOG, type ErrorCode } from '../../src/common/errors/index.js';
import type { ApiAnswer } from './http-client.js';

/** Expects the error body (D6) with our own request id in header and body (D8). */
export function expectProblem(answer: ApiAnswer, status: number, code: ErrorCode): void {
  expect([answer.status, answer.body?.code], answer.text).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.body).toMatchObject({ status, retryable: ERROR_CATALOG[code].retryable });
  for (const field of ['type', 'title', 'detail']) expect(answer.body[field]).toEqual(expect.any(String));
  expect(answer.body.request_id).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(answer.headers.get('x-request-id')).toBe(answer.body.request_id);
}

/** The pointers of a 400 `validation_failed`. */
export function invalidFields(answer: ApiAnswer): string[] {
  expectProblem(answer, 400, 'validation_failed');
  return (answer.body.errors as { pointer: string }[]).map((error) => error.pointer);
}

/** Status, type and body without the parts that differ between calls. */
export function withoutRequestId(answer: ApiAnswer): string {
  const text = answer.text.replace(/req_[0-9A-HJKMNP-TV-Z]{26}/g, 'req_');
  return `${answer.status} ${answer.headers.get('content-type')} ${text}`;
}
