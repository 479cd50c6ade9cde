import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../common/errors/index.js';
import type { Connection } from './connection.js';
import type { Connections } from './connections.js';
import type { Admission, EdgeCall, EdgeOptions } from './contract.js';
import { pathOf, toEdgeCall } from './edge-call.js';
import { toFailure } from './failure.js';

/** What the parts of one port's edge share. */
export interface Edge {
  readonly options: EdgeOptions;
  readonly connections: Connections;
  readonly anonymousPaths: ReadonlySet<string>;
}

/** The request id on the answer (D8), and the call on the list of those that are owed one. */
export function openCall(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
): { call: EdgeCall | null; connection: Connection } {
  request.startedAtMs = performance.now();
  reply.header('x-request-id', request.id);
  const { raw } = request;
  const connection = edge.connections.of(raw.socket);
  const call = isAnonymous(edge, request) ? null : toEdgeCall(request.id, raw, edge.options.trustProxyHops);
  connection.begin(reply, call);
  return { call, connection };
}

function isAnonymous({ anonymousPaths }: Edge, { raw }: FastifyRequest): boolean {
  return anonymousPaths.size > 0 && raw.method === 'GET' && anonymousPaths.has(pathOf(raw.url ?? ''));
}

/** Asks the gate. A gate that fails refuses: it never opens. */
export async function admit({ options }: Edge, call: EdgeCall): Promise<Admission> {
  try {
    return await options.gate.admit(call);
  } catch (thrown) {
    const failure = toFailure(thrown);
    if (failure?.unexpected) options.onUnexpectedError(thrown, call.requestId);
    const refusal = failure?.error ?? new AppError('internal_error');
    return { principal: null, headers: {}, refusal, keyId: null, partnerId: null, mode: null };
  }
}

/** Makes the gate's decision part of the call: known to the handlers, its headers on every answer. */
export function applyAdmission(request: FastifyRequest, reply: FastifyReply, admission: Admission): void {
  request.admission = admission;
  request.principal = admission.principal;
  reply.headers(admission.headers);
}
