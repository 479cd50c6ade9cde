import type { ComponentsObject, ResponseObject } from '@nestjs/swagger';
import {
  AppError,
  ERROR_CATALOGUE,
  type ErrorCode,
  PROBLEM_CONTENT_TYPE,
  toProblem,
  ValidationFailed,
} from '../../../../common/errors/index.js';
import { type HeaderName, headerRefs, PROBLEM_SCHEMA } from './components.js';
import type { DescribedOperation } from './operation.js';
import { problemCodes } from './problem-codes.js';

const RATE_HEADERS: readonly HeaderName[] = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];
/** Decided before a key is known, or without reading the request at all. */
const BEFORE_ADMISSION = new Set([401, 408, 431]);
/** Refusals that are stored and replayed (D18). */
const REPLAYABLE = new Set([402, 404, 409]);

/** Adds every problem that the operation can answer to its responses. */
export function addProblems(described: DescribedOperation): void {
  for (const [status, codes] of problemCodes(described)) {
    described.operation.responses[String(status)] = problemResponse(described, status, codes);
  }
}

/** What a partner is told about the bucket of the key (D21). */
export function rateHeaders({ port }: DescribedOperation): readonly HeaderName[] {
  return port === 'partner' ? RATE_HEADERS : [];
}

function problemResponse(
  described: DescribedOperation,
  status: number,
  codes: readonly ErrorCode[],
): ResponseObject {
  const schema = { $ref: `#/components/schemas/${PROBLEM_SCHEMA}` };
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].title}`).join(' '),
    headers: headerRefs(headersOf(described, status, codes)),
    content: {
      [PROBLEM_CONTENT_TYPE]: {
        schema: {
          allOf: [schema, { type: 'object', properties: { code: { type: 'string', enum: [...codes] } } }],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}

function headersOf(described: DescribedOperation, status: number, codes: readonly ErrorCode[]): HeaderName[] {
  const isFinal = codes.some((code) => code !== 'idempotency_in_progress');
  const replayable = described.method === 'post' && REPLAYABLE.has(status) && isFinal;
  return [
    'X-Request-Id',
    ...(BEFORE_ADMISSION.has(status) ? [] : rateHeaders(described)),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 || codes.includes('idempotency_in_progress')
      ? (['Retry-After'] as const)
      : []),
    ...(replayable ? (['Idempotent-Replayed'] as const) : []),
  ];
}

/** One example body of every code. */
export function problemExamples(): NonNullable<ComponentsObject['examples']> {
  const codes = Object.keys(ERROR_CATALOGUE) as ErrorCode[];
  return Object.fromEntries(
    codes.map((code) => [code, { value: toProblem(exampleError(code), EXAMPLE_REQUEST_ID) }]),
  );
}

const EXAMPLE_REQUEST_ID = 'req_01KAEXAMPLE000000000000000';

function exampleError(code: ErrorCode): AppError {
  if (code !== 'validation_failed') return new AppError(code);
  return new ValidationFailed([{ pointer: '/quantity', code: 'max', message: 'must be at most 20' }]);
}
