import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { PROBLEM_CONTENT_TYPE, toProblem, type AppError } from '../../../common/errors/index.js';
import { finishCall } from './connections.js';
import { LINGER_BYTES, LINGER_MS, MAX_BODY_BYTES } from './limits.js';

/**
 * Answers a call with the one error body (D6). The header repeats the body's request id, whatever an earlier
 * step put there.
 */
export function sendProblem(reply: FastifyReply, error: AppError): void {
  const { request } = reply;
  request.errorCode = error.code;
  // A buffer, because Fastify adds a charset to the type of JSON text.
  const body = Buffer.from(JSON.stringify(toProblem(error, request.id)));
  void reply
    .code(error.status)
    .headers(error.headers)
    .header('x-request-id', request.id)
    .type(PROBLEM_CONTENT_TYPE);
  if (leavesMuchUnread(request.raw)) sendAndLinger(reply, body);
  else sendAndKeepAlive(reply, body);
}

function sendAndKeepAlive(reply: FastifyReply, body: Buffer): void {
  const { raw: response, request } = reply;
  // Fastify closes the connection after every body that it could not parse. One that was read to its end is
  // no reason to, and would take pipelined calls down with it. (Taking the header back would make Node send
  // none at all.)
  if (request.raw.complete && reply.hasHeader('connection') && !response.hasHeader('connection')) {
    reply.header('connection', response.shouldKeepAlive ? 'keep-alive' : 'close');
  }
  reply.send(body);
}

/**
 * Whether the rest of the body is too much, or of unknown length, to read it for the sake of keeping the
 * connection. A caller that waits for `100 Continue` may never send it.
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
 * Sends the answer at once and closes, but only after the caller had its chance to read it: closing a socket
 * with unread bytes in it sends a reset, and a caller that is still writing never sees the answer.
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
