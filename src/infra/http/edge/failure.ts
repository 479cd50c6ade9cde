import { HttpException } from '@nestjs/common';
import { AppError, type ErrorCode } from '../../../common/errors/index.js';

/** How a thrown value is answered. */
export interface Failure {
  readonly error: AppError;
  /** Nobody foresaw it: it must be logged with its stack. */
  readonly unexpected: boolean;
}

const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  413: 'payload_too_large',
  414: 'uri_too_long',
  415: 'unsupported_media_type',
  417: 'expectation_failed',
  429: 'rate_limited',
  431: 'headers_too_large',
  503: 'service_unavailable',
};

/** SQLSTATEs of a PostgreSQL that is full, stopping, starting or cut off; class 08 comes on top. */
const DATABASE_DOWN = new Set([
  '53300',
  '55P03',
  '57P01',
  '57P02',
  '57P03',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
]);
/** What pg and its pool say without a code. */
const DATABASE_DOWN_MESSAGES = [
  'timeout exceeded when trying to connect',
  'Connection terminated unexpectedly',
  'Query read timeout',
  'Connection terminated due to connection timeout',
];

/**
 * The answer to anything thrown behind the edge (D6). The words of an unknown error are never sent.
 * Null: the caller hung up in the middle of its body, so there is nobody to answer and nothing to log.
 */
export function toFailure(exception: unknown): Failure | null {
  if (exception instanceof AppError) return { error: exception, unexpected: false };
  if (isClientAbort(exception)) return null;
  if (isDatabaseDown(exception)) return { error: unavailable(exception), unexpected: false };
  const status = exception instanceof HttpException ? exception.getStatus() : fastifyStatus(exception);
  return fromStatus(status, exception);
}

/** 503 for a call that may succeed in a moment. */
export function unavailable(cause?: unknown): AppError {
  return new AppError('service_unavailable', { headers: { 'retry-after': '1' }, cause });
}

function fromStatus(status: number, cause: unknown): Failure {
  if (status === 503) return { error: unavailable(cause), unexpected: false };
  if (status < 400 || status >= 500) {
    return { error: new AppError('internal_error', { cause }), unexpected: true };
  }
  return { error: new AppError(CODE_BY_STATUS[status] ?? 'bad_request', { cause }), unexpected: false };
}

/** Fastify's own refusals; Nest hands on those of 5xx as they are. */
function fastifyStatus(exception: unknown): number {
  const { name, statusCode } = (exception ?? {}) as { name?: unknown; statusCode?: unknown };
  return name === 'FastifyError' && typeof statusCode === 'number' ? statusCode : 500;
}

/** Node destroys a body that ends early with exactly this error; one of pg says `read ECONNRESET`. */
function isClientAbort(exception: unknown): boolean {
  return exception instanceof Error && exception.message === 'aborted' && codeOf(exception) === 'ECONNRESET';
}

function isDatabaseDown(exception: unknown): boolean {
  if (!(exception instanceof Error)) return false;
  const code = codeOf(exception);
  if (code !== null && (DATABASE_DOWN.has(code) || (code.length === 5 && code.startsWith('08')))) return true;
  return DATABASE_DOWN_MESSAGES.some((message) => exception.message.includes(message));
}

function codeOf(exception: Error): string | null {
  const { code } = exception as { code?: unknown };
  return typeof code === 'string' ? code : null;
}
