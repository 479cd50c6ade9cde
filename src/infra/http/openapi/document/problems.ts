import type { ComponentsObject, ReferenceObject, ResponseObject } from '@nestjs/swagger';
import {
  AppError,
  ERROR_CATALOG,
  type ErrorCode,
  PROBLEM_CONTENT_TYPE,
  toProblem,
  ValidationFailed,
} from '../../../../common/errors/index.js';
import { type DescribedOperation, parametersOf } from './operation.js';
import { type HeaderName, headerRefs, PROBLEM_SCHEMA } from './components.js';

/** Refusals that every call can receive (D7). */
const ALWAYS: readonly ErrorCode[] = [
  'bad_request',
  'validation_failed',
  'unauthorized',
  'forbidden',
  'method_not_allowed',
  'request_timeout',
  'uri_too_long',
  'expectation_failed',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
];
const PARTNER: readonly ErrorCode[] = ['partner_suspended', 'ip_not_allowed'];
const WITH_BODY: readonly ErrorCode[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type'];
const POST: readonly ErrorCode[] = [
  'idempotency_key_required',
  'idempotency_in_progress',
  'idempotency_key_reused',
];

/** All refusal codes of the operation by status, in catalog order. */
function problemCodes(described: DescribedOperation): Map<number, ErrorCode[]> {
  const possible = new Set(possibleCodes(described));
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of Object.keys(ERROR_CATALOG) as ErrorCode[]) {
    if (!possible.has(code)) continue;
    const { status } = ERROR_CATALOG[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function possibleCodes(described: DescribedOperation): ErrorCode[] {
  const { port, path, method, refusals, traits } = described;
  const isList = parametersOf(described).some((parameter) => parameter.name === 'cursor');
  return [
    ...ALWAYS,
    ...(port === 'partner' ? PARTNER : []),
    ...(port === 'portal' && !traits.anonymous ? (['session_changed'] as const) : []),
    ...(method === 'get' ? [] : WITH_BODY),
    ...(method === 'post' ? POST : []),
    ...(path.includes('{') ? (['not_found'] as const) : []),
    ...(isList ? (['invalid_cursor'] as const) : []),
    ...refusals,
  ];
}

const RATE_HEADERS: readonly HeaderName[] = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];
/** Statuses decided before a key is known, or without reading the request. */
const BEFORE_AUTHENTICATION = new Set([401, 408, 431]);
/** Refusals that are stored and replayed (D18). */
const REPLAYABLE = new Set([402, 404, 409]);

/** Adds every possible problem of the operation to its responses. */
export function addProblems(described: DescribedOperation): void {
  for (const [status, codes] of problemCodes(described)) {
    described.operation.responses[String(status)] = problemResponse(described, status, codes);
  }
}

/** Headers that show a partner its key's bucket (D21). */
export function rateHeaders({ port }: DescribedOperation): readonly HeaderName[] {
  return port === 'partner' ? RATE_HEADERS : [];
}

function problemResponse(
  described: DescribedOperation,
  status: number,
  codes: readonly ErrorCode[],
): ResponseObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_CATALOG[code].title}`).join(' '),
    headers: headerRefs(headersOf(described, status, codes)),
    content: {
      [PROBLEM_CONTENT_TYPE]: {
        schema: { $ref: `#/components/schemas/${PROBLEM_SCHEMA}` },
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
    ...(BEFORE_AUTHENTICATION.has(status) ? [] : rateHeaders(described)),
    ...(status === 401 && described.port !== 'portal' ? (['WWW-Authenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 || codes.includes('idempotency_in_progress')
      ? (['Retry-After'] as const)
      : []),
    ...(replayable ? (['Idempotent-Replayed'] as const) : []),
  ];
}

export function problemExamples(): NonNullable<ComponentsObject['examples']> {
  const codes = Object.keys(ERROR_CATALOG) as ErrorCode[];
  return Object.fromEntries(
    codes.map((code) => [code, { value: toProblem(exampleError(code), EXAMPLE_REQUEST_ID) }]),
  );
}

const EXAMPLE_REQUEST_ID = 'req_01KAEXAMPLE000000000000000';

function exampleError(code: ErrorCode): AppError {
  if (code !== 'validation_failed') return new AppError(code);
  return new ValidationFailed([{ pointer: '/quantity', code: 'max', message: 'must be at most 20' }]);
}

interface Use {
  readonly described: DescribedOperation;
  readonly status: string;
  readonly response: ResponseObject;
}

/**
 * Moves problem responses shared by several operations to the components, named after their codes. Responses of a
 * single operation stay inline.
 */
export function shareProblems(operations: readonly DescribedOperation[]): Record<string, ResponseObject> {
  const shared: Record<string, ResponseObject> = {};
  for (const [name, uses] of problemsByName(operations)) {
    if (uses.length < 2) continue;
    shared[name] = uses[0]!.response;
    for (const { described, status } of uses) {
      described.operation.responses[status] = { $ref: `#/components/responses/${name}` };
    }
  }
  return shared;
}

function problemsByName(operations: readonly DescribedOperation[]): Map<string, Use[]> {
  const uses = new Map<string, Use[]>();
  for (const described of operations) {
    for (const [status, response] of Object.entries(described.operation.responses)) {
      const name = nameOf(response);
      if (!response || '$ref' in response || name === null) continue;
      uses.set(name, [...(uses.get(name) ?? []), { described, status, response }]);
    }
  }
  return uses;
}

/** Equal codes have equal descriptions, except for the header of replayed responses. */
function nameOf(response: ResponseObject | ReferenceObject | undefined): string | null {
  if (!response || '$ref' in response) return null;
  const codes = Object.keys(response.content?.[PROBLEM_CONTENT_TYPE]?.examples ?? {});
  if (codes.length === 0) return null;
  return codes.map(pascal).join('Or') + (response.headers?.['Idempotent-Replayed'] ? 'OnPost' : '');
}

function pascal(code: string): string {
  return code.replace(/(^|_)([a-z])/g, (_match, _before, letter: string) => letter.toUpperCase());
}
