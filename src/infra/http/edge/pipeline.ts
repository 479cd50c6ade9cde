import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../common/errors/index.js';
import { LOCAL_ONLY, namesLocalHost } from '../local-host.js';
import { pathOf, toEdgeCall } from './call.js';
import { type Connection, type Connections, finishCall } from './connection.js';
import { type AuthResult, type EdgeCall, type EdgeOptions, NO_STORE } from './contract.js';
import { startCallSpan } from './call-span.js';
import { checkHead, checkUrl } from './head-checks.js';
import { sendProblem, toFailure, unavailable } from './problem.js';

/** State that the parts of one port's edge share. */
export interface Edge {
  readonly options: EdgeOptions;
  readonly connections: Connections;
  readonly anonymousPaths: ReadonlySet<string>;
  /** Whether the port listens on a loopback address. */
  readonly isLocal: boolean;
}

/** Sets the request id on the response (D8), and registers the call with its connection. */
export function openCall(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
): { call: EdgeCall | null; connection: Connection } {
  request.startedAtMs = performance.now();
  // Only the catalog overrides this (D46).
  reply.header('x-request-id', request.id).header('cache-control', NO_STORE);
  const { raw } = request;
  const { tracer } = edge.options;
  const connection = edge.connections.of(raw.socket);
  const call = isAnonymous(edge, request) ? null : toEdgeCall(request.id, raw, edge.options.trustProxyHops);
  if (call && tracer?.isOn) request.span = startCallSpan(tracer, request);
  connection.begin(reply, call);
  return { call, connection };
}

function isAnonymous(edge: Edge, { raw }: FastifyRequest): boolean {
  if (raw.method === 'HEAD') return isAnonymousPath(edge, raw);
  if (raw.method !== 'GET') return false;
  return isAnonymousPath(edge, raw) || (edge.options.isPublicPath?.(pathOf(raw.url ?? '')) ?? false);
}

function isAnonymousPath({ anonymousPaths }: Edge, { url = '' }: IncomingMessage): boolean {
  return anonymousPaths.size > 0 && anonymousPaths.has(pathOf(url));
}

/** A web page whose name was rebound to a loopback address must not be able to read the paths that need no token. */
function refuseForeignHost(edge: Edge, raw: IncomingMessage): AppError | null {
  const { host } = raw.headers;
  if (!edge.isLocal || host === undefined || !isAnonymousPath(edge, raw) || namesLocalHost(host)) return null;
  return new AppError('forbidden', { detail: LOCAL_ONLY });
}

/** Authenticates the call. If the authenticator fails, the call is refused. */
export async function authenticate({ options }: Edge, call: EdgeCall): Promise<AuthResult> {
  try {
    return await options.services().authenticator.authenticate(call);
  } catch (thrown) {
    const failure = toFailure(thrown);
    if (failure?.unexpected) options.onUnexpectedError(thrown, call.requestId);
    const refusal = failure?.error ?? new AppError('internal_error');
    return { principal: null, headers: {}, refusal, keyId: null, partnerId: null, mode: null };
  }
}

/** Attaches the authenticator's decision to the call for its handlers, and its headers to the response. */
export function applyAuthResult(request: FastifyRequest, reply: FastifyReply, result: AuthResult): void {
  request.authResult = result;
  request.principal = result.principal;
  reply.headers(result.headers);
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * The one hook of D7. It sets the request id, authenticates and checks the head, all before any byte of the body is
 * read. Nest guards run only after the body is parsed, and not at all for unknown paths.
 */
export function createOnRequest(edge: Edge): OnRequest {
  return async function onRequest(request, reply) {
    // A call that arrived before the server began to close is still served.
    const isLate = edge.connections.closing;
    const { call, connection } = openCall(edge, request, reply);
    if (connection.isCrowded && !(await connection.turn())) return void reply.hijack();
    if (call) {
      const result = await authenticate(edge, call);
      applyAuthResult(request, reply, result);
      if (result.refusal) return sendProblem(reply, result.refusal);
    }
    const refusal = isLate
      ? unavailable()
      : (checkHead(request, edge.options) ?? (call ? null : refuseForeignHost(edge, request.raw)));
    if (refusal) return sendProblem(reply, refusal);
    if (request.raw.method === 'GET') return;
    // Node leaves this to us (see `createHttpServer`), so that a refused caller need not send the body.
    if (expectsContinue(request.raw)) reply.raw.writeContinue();
    connection.startReading(reply);
  };
}

function expectsContinue({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor !== 0;
}

/**
 * Responds to requests that the router refuses before any hook runs: those with malformed percent-encoding in the path.
 */
export async function respondUnroutable(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // Fastify creates these requests without decorations.
  Object.assign(request, { principal: null, replayOf: null, authResult: null, errorCode: null, span: null });
  const { call } = openCall(edge, request, reply);
  const result = call && (await authenticate(edge, call));
  if (result) applyAuthResult(request, reply, result);
  sendProblem(reply, result?.refusal ?? checkUrl(request.raw) ?? badEncoding());
  finishCall(reply, reply.statusCode);
}

function badEncoding(): AppError {
  return new AppError('bad_request', {
    detail:
      'The percent-encoding of the URL is malformed. Encode each part of the path and query separately.',
  });
}
