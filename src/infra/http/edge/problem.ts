import type { IncomingMessage } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { AppError, type ErrorCode, PROBLEM_CONTENT_TYPE, toProblem } from '../../../common/errors/index.js';
import { finishCall } from './connection.js';
import { type ErrorPage, LINGER_BYTES, LINGER_MS, MAX_BODY_BYTES, NO_STORE } from './contract.js';

/**
 * Writes the one error body for everything thrown behind the edge: by guards, pipes, handlers, Nest and Fastify (D6).
 * The app's only exception filter; register it as `APP_FILTER` or with `useGlobalFilters`.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly onUnexpectedError: (error: unknown, requestId: string) => void) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const failure = toFailure(exception);
    if (!failure) return;
    if (failure.unexpected) this.onUnexpectedError(exception, reply.request.id);
    if (reply.sent) return;
    if (reply.raw.headersSent) cutOff(reply, failure.error);
    else sendProblem(reply, failure.error);
  }
}

/** A partial response cannot become an error body; cutting it off shows the caller that it is incomplete. */
function cutOff(reply: FastifyReply, error: AppError): void {
  reply.request.errorCode = error.code;
  finishCall(reply, error.status);
  reply.raw.destroy();
}

/** The refusal for a thrown value. */
export interface Failure {
  readonly error: AppError;
  /** An unforeseen error, which must be logged with its stack. */
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

/** Node.js error codes of an unreachable server or a broken connection. */
const DATABASE_DOWN = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);
/**
 * SQLSTATEs of a PostgreSQL that is read-only, waiting for a lock, stopping or starting, or that ended the session; of
 * a failed connection; of exhausted disk, memory or connections.
 */
const DATABASE_DOWN_STATES = /^(?:25006|25P0[34]|55P03|57P0.|08...|53...)$/;
/** Messages of pg and its pool without a code. */
const DATABASE_DOWN_MESSAGES = [
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Connection terminated',
  'is not queryable',
  'message from backend',
];

/**
 * The response to anything thrown behind the edge. An unknown error's message is never sent. Null if the caller
 * hung up while it sent its body, because nothing waits for a response then.
 */
export function toFailure(exception: unknown): Failure | null {
  if (exception instanceof AppError) return { error: exception, unexpected: false };
  if (isClientAbort(exception)) return null;
  // Log the stack, without the submitted values, so that operators can find the slow statement.
  if (isStatementCanceled(exception)) return { error: unavailable(exception), unexpected: true };
  if (isDatabaseDown(exception)) return { error: unavailable(exception), unexpected: false };
  const status = exception instanceof HttpException ? exception.getStatus() : fastifyStatus(exception);
  return fromStatus(status, exception);
}

/** 503 for a call that may soon succeed. */
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

/** Status of Fastify's own refusals; Nest passes its 5xx on unchanged. */
function fastifyStatus(exception: unknown): number {
  const { name, statusCode } = (exception ?? {}) as { name?: unknown; statusCode?: unknown };
  return name === 'FastifyError' && typeof statusCode === 'number' ? statusCode : 500;
}

/** Node destroys a truncated body with exactly this error; pg's message is `read ECONNRESET`. */
function isClientAbort(exception: unknown): boolean {
  return exception instanceof Error && exception.message === 'aborted' && codeOf(exception) === 'ECONNRESET';
}

function isDatabaseDown(exception: unknown): boolean {
  if (!(exception instanceof Error)) return false;
  const code = codeOf(exception);
  if (code !== null && (DATABASE_DOWN.has(code) || DATABASE_DOWN_STATES.test(code))) return true;
  // The folder or file of a Unix socket is missing.
  if (code === 'ENOENT' && (exception as NodeJS.ErrnoException).syscall === 'connect') return true;
  return DATABASE_DOWN_MESSAGES.some((message) => exception.message.includes(message));
}

/** `statement_timeout` (D43); its transaction is rolled back. */
function isStatementCanceled(exception: unknown): boolean {
  return exception instanceof Error && codeOf(exception) === '57014';
}

function codeOf(exception: Error): string | null {
  const { code } = exception as { code?: unknown };
  return typeof code === 'string' ? code : null;
}

/** Sends the one error body, or the port's own page. A buffer, because Fastify adds a charset to the content type of JSON text. The header repeats the body's request id, even if an earlier step has set another. */
export function sendProblem(reply: FastifyReply, error: AppError): void {
  const { request } = reply;
  request.errorCode = error.code;
  const { headers, body: text } = bodyOf(reply, error);
  const body = Buffer.from(text);
  void reply.code(error.status).headers(error.headers).header('x-request-id', request.id).headers(headers);
  if (leavesMuchUnread(request.raw)) sendAndLinger(reply, body);
  else sendAndKeepAlive(reply, body);
}

function bodyOf({ request, server }: FastifyReply, error: AppError): ErrorPage {
  if (server.errorPage) return server.errorPage(error, request);
  const headers = { 'cache-control': NO_STORE, 'content-type': PROBLEM_CONTENT_TYPE };
  return { headers, body: JSON.stringify(toProblem(error, request.id)) };
}

function sendAndKeepAlive(reply: FastifyReply, body: Buffer): void {
  const { raw: response, request } = reply;
  // Fastify closes the connection after every body that it cannot parse. If the body was read completely, keep the
  // connection, because closing it would lose pipelined calls. (Removing the header instead would make Node send none
  // at all.)
  if (request.raw.complete && reply.hasHeader('connection') && !response.hasHeader('connection')) {
    reply.header('connection', response.shouldKeepAlive ? 'keep-alive' : 'close');
  }
  reply.send(body);
}

/**
 * Whether the rest of the body is too long, or of unknown length, to be read only to keep the connection. A caller that
 * waits for `100 Continue` may never send it.
 */
function leavesMuchUnread(raw: IncomingMessage): boolean {
  if (raw.complete) return false;
  const { headers } = raw;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  if (length === undefined || length === '0') return false;
  return headers.expect !== undefined || Number(length) > MAX_BODY_BYTES;
}

/**
 * Sends the response at once, but closes only after the caller had time to read it. Closing a socket with unread bytes
 * sends a reset, and a caller that is still writing would never see the response.
 */
function sendAndLinger(reply: FastifyReply, body: Buffer): void {
  const { raw: response, statusCode } = reply;
  reply.header('connection', 'close').header('content-length', String(body.length));
  reply.hijack();
  response.writeHead(statusCode, reply.getHeaders() as Record<string, string>);
  response.write(body);
  finishCall(reply, statusCode);
  discardBody(reply.request.raw, () => response.end());
}

function discardBody(raw: IncomingMessage, done: () => void): void {
  let discarded = 0;
  const timer = setTimeout(finish, LINGER_MS);
  raw.on('data', count);
  raw.once('close', finish);

  function count(chunk: Buffer): void {
    discarded += chunk.length;
    if (discarded > LINGER_BYTES) finish();
  }
  function finish(): void {
    clearTimeout(timer);
    raw.off('data', count).off('close', finish);
    done();
  }
}
