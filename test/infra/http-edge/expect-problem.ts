import { expect } from 'vitest';
import { ERROR_CATALOG, type ErrorCode } from '../../../src/common/errors/index.js';
import type { EdgeApp } from './edge-app.js';
import { until, type Answer } from './raw-client.js';

/** Expects the error body with our own request id in header and body (D6, D8). */
export function expectProblem(answer: Answer, status: number, code: ErrorCode): void {
  expect(answer.problem).toMatchObject({ status, code, retryable: ERROR_CATALOG[code].retryable });
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.problem.request_id).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(answer.headers['x-request-id']).toBe(answer.problem.request_id);
}

/** Also expects exactly one record since the list was cleared (D38). */
export async function expectOneProblem(
  { records }: EdgeApp,
  answer: Answer,
  status: number,
  code: ErrorCode,
): Promise<void> {
  expectProblem(answer, status, code);
  await until(() => records.length > 0);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ status, errorCode: code, requestId: answer.problem.request_id });
}
