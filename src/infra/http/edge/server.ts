import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyHttpOptions, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { newId } from '../../../common/ids.js';
import { runWithin } from '../../tracing/index.js';
import { isLoopback } from '../local-host.js';
import { DEFAULT_SOCKET_LIMITS, limitSockets } from '../socket-limits.js';
import { useBodyParser } from './body.js';
import { toOriginForm } from './call.js';
import { CLIENT_GONE, Connections, finishCall } from './connection.js';
import {
  DEFAULT_CLOSE_LIMIT_MS,
  DEFAULT_REQUEST_TIMEOUT_MS,
  type EdgeOptions,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_BODY_BYTES,
  MAX_HEADER_BYTES,
  TIMEOUT_CHECK_INTERVAL_MS,
} from './contract.js';
import { respondUnroutable, createOnRequest, type Edge } from './pipeline.js';
import { onClientError, onConnect } from './socket-problems.js';

/**
 * The HTTP edge of a port as a Nest adapter: request id, authentication, limits and the error body of D5 to D9 for
 * every request, and one record per response (D38). Create the app with `{ bodyParser: false }`, because Nest would add
 * its own parsers, and register `ProblemFilter`.
 */
export function createEdgeAdapter(options: EdgeOptions): FastifyAdapter {
  const edge: Edge = {
    options,
    connections: new Connections(() => options.services().recorder),
    anonymousPaths: new Set(options.anonymousPaths),
    isLocal: isLoopback(options.listensAt ?? ''),
  };
  const adapter = new FastifyAdapter(fastifyOptions(edge));
  const fastify: FastifyInstance = adapter.getInstance();
  decorateRequests(fastify);
  fastify.decorate('errorPage', options.errorPage ?? null);
  useBodyParser(fastify, options.bodies ?? 'json');
  fastify.addHook('onRequest', createOnRequest(edge));
  if (options.tracer?.isOn || options.namesCalls) fastify.addHook('preHandler', nameCall);
  fastify.addHook('onResponse', (_request, reply, done) => {
    finishCall(reply, reply.raw.writableFinished ? reply.statusCode : CLIENT_GONE);
    done();
  });
  fastify.addHook('preClose', (done) => {
    const closeWithinMs = options.closeWithinMs?.() ?? DEFAULT_CLOSE_LIMIT_MS;
    edge.connections.close(options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS, closeWithinMs);
    done();
  });
  return adapter;
}

/**
 * Runs all later steps within the call's context. It is a `preHandler` hook, because reading a body leaves the context
 * that an earlier hook entered.
 */
function nameCall({ span, id }: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  runWithin(span?.context ?? null, { requestId: id }, done);
}

function fastifyOptions(edge: Edge): FastifyHttpOptions<Server> {
  return {
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => newId('req'),
    // The hook responds instead, with the one error body and after authentication.
    return503OnClosing: false,
    // A parameter needs no separate limit: a long one reaches its route, which returns 404, and the whole head is
    // limited.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    rewriteUrl: (raw) => toOriginForm(raw.url ?? ''),
    serverFactory: (listener) => createHttpServer(edge, listener),
    clientErrorHandler: (error, socket) => onClientError(edge, error, socket),
    frameworkErrors: (_error, request, reply) => {
      respondUnroutable(edge, request, reply as unknown as FastifyReply).catch((thrown: unknown) => {
        reply.raw.destroy();
        edge.options.onUnexpectedError(thrown, request.id);
      });
    },
  };
}

/** Declared up front, so that all request objects have the same shape. */
function decorateRequests(fastify: FastifyInstance): void {
  fastify.decorateRequest('principal', null);
  fastify.decorateRequest('startedAtMs', 0);
  fastify.decorateRequest('replayOf', null);
  fastify.decorateRequest('authResult', null);
  fastify.decorateRequest('errorCode', null);
  fastify.decorateRequest('span', null);
}

/**
 * The server below Fastify. Created here, because for `localhost` Fastify would open a second one, with the limits but
 * without the listeners.
 */
function createHttpServer(edge: Edge, listener: RequestListener): Server {
  const { requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS, socketLimits = DEFAULT_SOCKET_LIMITS } =
    edge.options;
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      // Checked by the edge: Node's own 400 has neither id nor body.
      requireHostHeader: false,
      requestTimeout: requestTimeoutMs,
      // Node's default exceeds `requestTimeout`, and a body may trickle for that long.
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      // Saves the stream of a request without a body: 2 of 14 us of CPU for a GET. Such a request emits no 'close', so
      // do not use `request.signal` to detect that the caller is gone.
      optimizeEmptyRequests: true,
    },
    listener,
  );
  // Node silently drops header lines from the 1001st on; a second Authorization must not hide there.
  server.maxHeadersCount = 0;
  limitSockets(server, socketLimits, (socket) => edge.connections.of(socket).isIdle);
  server.on('connection', (socket: Socket) => edge.connections.of(socket));
  // Without these listeners, Node would respond to the first itself, and to the second before the head is checked.
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
