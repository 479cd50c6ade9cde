import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../common/errors/index.js';
import { finishCall } from './connections.js';
import { admit, applyAdmission, openCall, type Edge } from './edge.js';
import { unavailable } from './failure.js';
import { checkHead, checkUrl } from './head-checks.js';
import { sendProblem } from './problem-reply.js';

type OnRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * The one hook of D7: request id, gate, then whatever else the head can be refused for, all before a byte of
 * the body is read. Nest guards run after the body is parsed, and not at all for unknown paths.
 */
export function createOnRequest(edge: Edge): OnRequest {
  const { idempotencyKeyRequired } = edge.options;
  return async function onRequest(request, reply) {
    // A call that was here before the server began to close is still served.
    const isLate = edge.connections.closing;
    const { call, connection } = openCall(edge, request, reply);
    if (call) {
      const admission = await admit(edge, call);
      applyAdmission(request, reply, admission);
      if (admission.refusal) return sendProblem(reply, admission.refusal);
    }
    const refusal = isLate ? unavailable() : checkHead(request, idempotencyKeyRequired);
    if (refusal) return sendProblem(reply, refusal);
    if (request.raw.method === 'GET') return;
    // Node leaves this to us, see `createHttpServer`: who is refused need not send the body.
    if (expectsContinue(request.raw)) reply.raw.writeContinue();
    connection.startReading(reply);
  };
}

function expectsContinue({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor !== 0;
}

/** What the router refuses before any hook has run: bad percent-encoding in the path. */
export async function answerUnroutable(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // Fastify makes these requests without decorations.
  Object.assign(request, { principal: null, replayOf: null, admission: null, errorCode: null });
  const { call } = openCall(edge, request, reply);
  const admission = call && (await admit(edge, call));
  if (admission) applyAdmission(request, reply, admission);
  sendProblem(reply, admission?.refusal ?? checkUrl(request.raw) ?? badEncoding());
  finishCall(reply, reply.statusCode);
}

function badEncoding(): AppError {
  return new AppError('bad_request', { detail: 'The percent-encoding of the URL is malformed.' });
}
