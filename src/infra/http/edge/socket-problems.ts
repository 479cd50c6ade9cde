import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { AppError, PROBLEM_CONTENT_TYPE, toProblem, type ErrorCode } from '../../../common/errors/index.js';
import { newId } from '../../../common/ids.js';
import { parseAddress } from '../../network/ip-address.js';
import { recordResponse, recordUnreadable, toEdgeCall } from './call.js';
import { CLIENT_GONE, type Connection } from './connection.js';
import { LINGER_MS, NO_STORE } from './contract.js';
import { authenticate, type Edge } from './pipeline.js';

const CODE_BY_PARSER_ERROR: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};
/** The caller closed its side during a request. */
const TRUNCATED = 'HPE_INVALID_EOF_STATE';

/**
 * Responds to requests that Node's HTTP parser rejects, in the format of D6. It is the only response without prior
 * authentication, unless the head was valid and the body broke off: that call already has its id and rate-limit
 * headers.
 */
export function onClientError(edge: Edge, error: NodeJS.ErrnoException, socket: Socket): void {
  const connection = edge.connections.of(socket);
  // The parser reports the error again with every further chunk.
  if (connection.broken) return;
  connection.broken = true;
  const parserError = error.code ?? '';
  const isParserError = parserError.startsWith('HPE_') || parserError === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (!isParserError || !socket.writable) {
    socket.destroy();
    return;
  }
  const { arriving } = connection;
  if (!arriving) connection.whenOwed(0, () => refuseUnknown(edge, connection, parserError));
  else connection.whenReading(arriving, () => refuseArriving(connection, arriving, parserError));
}

function refuseUnknown({ options }: Edge, { socket }: Connection, parserError: string): void {
  if (!socket.writable) return;
  const error = toAppError(parserError);
  const requestId = newId('req');
  const remoteAddress = parseAddress(socket.remoteAddress ?? '') ?? '';
  respondOnSocket(socket, error, requestId, {});
  recordUnreadable(options.services().recorder, requestId, remoteAddress, error.status, error.code);
}

/** The responses to earlier calls are sent first. */
function refuseArriving(connection: Connection, reply: FastifyReply, parserError: string): void {
  connection.whenOwed(1, () => {
    if (!connection.isOwed(reply) || reply.raw.headersSent || !connection.socket.writable) return;
    const { request } = reply;
    const error = toAppError(parserError);
    respondOnSocket(connection.socket, error, request.id, request.authResult?.headers ?? {});
    request.errorCode = error.code;
    connection.finish(reply, parserError === TRUNCATED ? CLIENT_GONE : error.status);
  });
}

function toAppError(parserError: string): AppError {
  return new AppError(CODE_BY_PARSER_ERROR[parserError] ?? 'bad_request');
}

/** CONNECT never becomes a request: Node hands over the bare socket without its own listeners. */
export async function onConnect(edge: Edge, raw: IncomingMessage, socket: Socket): Promise<void> {
  const startedAtMs = performance.now();
  socket.on('error', () => socket.destroy());
  socket.resume();
  const call = toEdgeCall(newId('req'), raw, edge.options.trustProxyHops);
  const authResult = await authenticate(edge, call);
  const error = authResult.refusal ?? new AppError('method_not_allowed', { headers: { allow: 'GET, POST' } });
  edge.connections.of(socket).whenOwed(0, () => {
    const status = socket.writable ? error.status : CLIENT_GONE;
    respondOnSocket(socket, error, call.requestId, authResult.headers);
    recordResponse(edge.options.services().recorder, call, {
      status,
      startedAtMs,
      authResult,
      errorCode: error.code,
    });
  });
}

function respondOnSocket(
  socket: Socket,
  error: AppError,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): void {
  const body = JSON.stringify(toProblem(error, requestId));
  const lines = Object.entries({
    date: new Date().toUTCString(),
    ...headers,
    ...error.headers,
    'content-type': PROBLEM_CONTENT_TYPE,
    'x-request-id': requestId,
    'cache-control': NO_STORE,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${body}`);
  // Not at once, because a reset for unread bytes would discard the response. Not never, because the caller may keep
  // its side open forever.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
