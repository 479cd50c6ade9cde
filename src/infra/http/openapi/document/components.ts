import type { HeaderObject, ParameterObject, ReferenceObject, SchemaObject } from '@nestjs/swagger';
import { ERROR_CODES } from '../../../../common/errors/index.js';
import { REQUEST_ID_SCHEMA } from '../responds.js';

/** Response headers shared by operations; the keys are the wire names. */
export const HEADERS = {
  'X-Request-Id': {
    description: 'The same id as `request_id` in the body. Include it when you contact support.',
    required: true,
    schema: { $ref: `#/components/schemas/${REQUEST_ID_SCHEMA}` },
  },
  'X-RateLimit-Limit': {
    description: 'The burst size of this key.',
    schema: { type: 'integer' },
    example: 120,
  },
  'X-RateLimit-Remaining': {
    description: 'Calls left in the burst after this one.',
    schema: { type: 'integer', minimum: 0 },
    example: 119,
  },
  'X-RateLimit-Reset': {
    description: 'The time at which the full burst is available again, in Unix seconds.',
    schema: { type: 'integer' },
    example: 1_795_255_201,
  },
  'Retry-After': {
    description: 'Seconds to wait before you retry the same request.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  ETag: {
    description: 'The version of this response. Send it back in `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
    example: 'W/"12-1f3a"',
  },
  Location: {
    description: 'The path of the created object.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Idempotent-Replayed': {
    description: 'Present if this is the stored response of the first call with this `Idempotency-Key`.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Preference-Applied': {
    description: 'Present if the service honored `wait`: the maximum wait in seconds.',
    schema: { type: 'string', pattern: '^wait=[0-9]+$' },
    example: 'wait=25',
  },
  Allow: {
    description: 'The methods that this path supports.',
    required: true,
    schema: { type: 'string' },
    example: 'GET, POST',
  },
  'WWW-Authenticate': {
    required: true,
    schema: { type: 'string', enum: ['Bearer'] },
  },
} as const satisfies Record<string, HeaderObject>;

export type HeaderName = keyof typeof HEADERS;

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Identifies this call for 24 hours. A retry with the same key and request gets the original response. Use a UUID, for example.',
  schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{8,128}$' },
  example: '6f1c2c0a-6f1e-4c43-9d5e-2f9a4b1f7a10',
} as const;

/** Request headers shared by operations. */
export const PARAMETERS = {
  IdempotencyKey: { ...IDEMPOTENCY_KEY, required: true },
  OptionalIdempotencyKey: { ...IDEMPOTENCY_KEY, required: false },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    required: false,
    description: 'The `ETag` of an earlier answer, a list of them, or `*`.',
    schema: { type: 'string' },
    example: 'W/"12-1f3a"',
  },
  PreferWait: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description:
      '`wait=N` (RFC 7240): the call waits up to N seconds (at most 25) for what it reads: the next event, or the end of the order or top-up. Ignored if it is malformed, or if too many calls of the key are already waiting.',
    schema: { type: 'string' },
    example: 'wait=25',
  },
  Actor: {
    name: 'X-Actor',
    in: 'header',
    required: false,
    description: 'The portal user who makes the call, for the audit log.',
    schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,128}$' },
    example: 'user-17',
  },
} as const satisfies Record<string, ParameterObject>;

export type ParameterName = keyof typeof PARAMETERS;

export const PROBLEM_SCHEMA = 'Problem';

/** Schemas without a class in the code (D6, D8). */
export const SCHEMAS: Readonly<Record<string, SchemaObject>> = {
  [REQUEST_ID_SCHEMA]: {
    type: 'string',
    description: 'The id of the call. In a replayed response, the id of the first call.',
    example: 'req_01KAEXAMPLE000000000000000',
  },
  [PROBLEM_SCHEMA]: {
    type: 'object',
    description: 'The body of every error (RFC 9457).',
    required: ['type', 'title', 'status', 'code', 'detail', 'request_id', 'retryable'],
    properties: {
      type: { type: 'string', format: 'uri-reference' },
      title: { type: 'string' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      code: { type: 'string', enum: ERROR_CODES, description: 'The error code for programs to branch on.' },
      detail: { type: 'string', description: 'A message for people. The wording may change.' },
      request_id: { $ref: `#/components/schemas/${REQUEST_ID_SCHEMA}` },
      retryable: {
        type: 'boolean',
        description: 'True if the same request with the same Idempotency-Key may succeed later.',
      },
      errors: { type: 'array', items: { $ref: '#/components/schemas/ProblemField' } },
    },
  },
  ProblemField: {
    type: 'object',
    required: ['pointer', 'code', 'message'],
    properties: {
      pointer: {
        type: 'string',
        description: 'A JSON Pointer (RFC 6901) into the body, or `?name` for a query parameter.',
      },
      code: { type: 'string' },
      message: { type: 'string' },
    },
  },
};

/** References to shared headers, for the `headers` of a response. */
export function headerRefs(names: readonly HeaderName[]): Record<string, ReferenceObject> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export function parameterRef(name: ParameterName): ReferenceObject {
  return { $ref: `#/components/parameters/${name}` };
}
