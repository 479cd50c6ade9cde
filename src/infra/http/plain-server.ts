import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { NO_STORE } from './edge/index.js';
import { limitSockets, type SocketLimits } from './socket-limits.js';

/** What is left to a caller to read why it was refused. */
const LINGER_MS = 1_000;

const STATUS_BY_PARSER_ERROR: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/**
 * A server without Nest, for a few paths of our own, with the limits of all ports (D43). No cache may keep its answers, those neither that Node writes
 * before anybody has seen a request (D46).
 */
export function createPlainServer(
  options: ServerOptions,
  limits: SocketLimits,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const newest = new WeakMap<Duplex, ServerResponse>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    newest.set(request.socket, response);
    response.setHeader('cache-control', NO_STORE);
    answer(request, response);
  };
  const server = createServer({ ...options, requireHostHeader: false }, listener);
  limitSockets(server, limits, (socket) => newest.get(socket)?.writableFinished ?? true);
  // Node would refuse it in an answer of its own.
  server.on('checkExpectation', listener);
  server.on('clientError', (error, socket) => refuseUnreadable(error, socket, newest.get(socket)));
  return server;
}

function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  newest: ServerResponse | undefined,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  if (!hasLastAnswer(newest)) {
    const status = STATUS_BY_PARSER_ERROR[error.code ?? ''] ?? 400;
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncache-control: ${NO_STORE}\r\ncontent-length: 0\r\n` +
        'connection: close\r\n\r\n',
    );
  }
  // Not at once: a reset would take the answer with it.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** What breaks off after its answer gets no second one, and nothing follows one that closes the connection. */
function hasLastAnswer(newest: ServerResponse | undefined): boolean {
  if (!newest?.headersSent) return false;
  return !newest.req.complete || newest.getHeader('connection') === 'close';
}
