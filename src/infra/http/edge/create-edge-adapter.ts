import type { Server } from 'node:http';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyHttpOptions, FastifyInstance, FastifyReply } from 'fastify';
import { newId } from '../../../common/ids.js';
import { CLIENT_GONE } from './connection.js';
import { Connections, finishCall } from './connections.js';
import type { EdgeOptions } from './contract.js';
import { toOriginForm } from './edge-call.js';
import type { Edge } from './edge.js';
import { createHttpServer } from './http-server.js';
import { useJsonParser } from './json-body.js';
import { DEFAULT_REQUEST_TIMEOUT_MS, MAX_BODY_BYTES, MAX_HEADER_BYTES } from './limits.js';
import { answerUnroutable, createOnRequest } from './on-request.js';
import { onClientError } from './socket-answers.js';

/**
 * The HTTP edge of a port as a Nest adapter: request id, gate, limits and the error body of D5 to D9 for
 * everything that arrives, and one record per answer (D38). Create the app with `{ bodyParser: false }` (Nest
 * would add parsers of its own) and register `ProblemFilter`.
 */
export function createEdgeAdapter(options: EdgeOptions): FastifyAdapter {
  const edge: Edge = {
    options,
    connections: new Connections(options.recorder),
    anonymousPaths: new Set(options.anonymousPaths),
  };
  const adapter = new FastifyAdapter(fastifyOptions(edge));
  const fastify: FastifyInstance = adapter.getInstance();
  decorateRequests(fastify);
  useJsonParser(fastify);
  fastify.addHook('onRequest', createOnRequest(edge));
  fastify.addHook('onResponse', (_request, reply, done) => {
    finishCall(reply, reply.raw.writableFinished ? reply.statusCode : CLIENT_GONE);
    done();
  });
  fastify.addHook('preClose', (done) => {
    edge.connections.close(options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS);
    done();
  });
  return adapter;
}

function fastifyOptions(edge: Edge): FastifyHttpOptions<Server> {
  return {
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => newId('req'),
    // The hook answers instead, in the one error body and after the gate.
    return503OnClosing: false,
    // A parameter of any length reaches its route, whose answer is 404: the head as a whole is limited.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    rewriteUrl: (raw) => toOriginForm(raw.url ?? ''),
    serverFactory: (listener) => createHttpServer(edge, listener),
    clientErrorHandler: (error, socket) => onClientError(edge, error, socket),
    frameworkErrors: (_error, request, reply) => {
      answerUnroutable(edge, request, reply as unknown as FastifyReply).catch((thrown: unknown) => {
        reply.raw.destroy();
        edge.options.onUnexpectedError(thrown, request.id);
      });
    },
  };
}

/** Declared up front, so that every request has the same shape. */
function decorateRequests(fastify: FastifyInstance): void {
  fastify.decorateRequest('principal', null);
  fastify.decorateRequest('startedAtMs', 0);
  fastify.decorateRequest('replayOf', null);
  fastify.decorateRequest('admission', null);
  fastify.decorateRequest('errorCode', null);
}
