import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Edge } from './edge.js';
import {
  DEFAULT_REQUEST_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  TIMEOUT_CHECK_INTERVAL_MS,
} from './limits.js';
import { onConnect } from './socket-answers.js';

/**
 * The server below Fastify. Made here, because Fastify opens a second one for `localhost`, with the limits
 * but without the listeners.
 */
export function createHttpServer(edge: Edge, listener: RequestListener): Server {
  const { requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS } = edge.options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      // Checked by us: Node's own 400 has neither id nor body.
      requireHostHeader: false,
      requestTimeout: requestTimeoutMs,
      // Longer than `requestTimeout`, and a body may trickle for that long.
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      // Spares a request without a body the life of a stream: 2 of 14 us of CPU for a GET. The price: such a
      // request emits no 'close', so do not use `request.signal` to learn that the caller is gone.
      optimizeEmptyRequests: true,
    },
    listener,
  );
  // Node silently drops header lines from the 1001st on; a second Authorization must not hide there.
  server.maxHeadersCount = 0;
  server.on('connection', (socket: Socket) => edge.connections.of(socket));
  // Node would answer the one by itself, and the other before anybody has looked at the head.
  server.on('checkExpectation', listener);
  server.on('checkContinue', listener);
  server.on('connect', (raw, socket) => {
    onConnect(edge, raw, socket as Socket).catch((error: unknown) => {
      socket.destroy();
      edge.options.onUnexpectedError(error, '-');
    });
  });
  return server;
}
