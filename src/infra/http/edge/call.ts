import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../../common/errors/index.js';
import { parseAddress, parseForwardedAddress } from '../../network/ip-address.js';
import { endCallSpan, routeOf } from './call-span.js';
import type { AuthResult, CallRecorder, EdgeCall } from './contract.js';

/** The call as the authenticator and the access log see it. */
export function toEdgeCall(requestId: string, raw: IncomingMessage, trustProxyHops: number): EdgeCall {
  return {
    requestId,
    method: raw.method ?? '-',
    // `url` is the routed target, see `toOriginForm`.
    url: (raw as { originalUrl?: string }).originalUrl ?? raw.url ?? '-',
    headers: raw.headers,
    rawHeaders: raw.rawHeaders,
    remoteAddress: clientAddress(raw, trustProxyHops),
  };
}

/**
 * The caller's address (D15): each trusted proxy has appended the address it saw, so with n hops it is the n-th element
 * of `X-Forwarded-For` from the right. The caller may forge everything further left. Empty when that element is not an
 * address: the proxy's own address would otherwise pass allow-lists meant for the proxy's network.
 */
export function clientAddress({ socket, headers }: IncomingMessage, trustProxyHops: number): string {
  const forwarded = headers['x-forwarded-for'];
  if (trustProxyHops === 0 || forwarded === undefined) return parseAddress(socket.remoteAddress ?? '') ?? '';
  // Empty elements count: a caller that sends one must not shift the element appended by a trusted proxy.
  const seen = String(forwarded).split(',');
  // With fewer elements than hops the call bypassed a proxy; the leftmost element is the best known.
  return parseForwardedAddress(seen[Math.max(0, seen.length - trustProxyHops)]!) ?? '';
}

/** The path of a request target, without query and fragment. */
export function pathOf(url: string): string {
  for (let i = 0; i < url.length; i++) {
    const char = url.charCodeAt(i);
    if (char === 63 /* ? */ || char === 35 /* # */) return url.slice(0, i);
  }
  return url;
}

/**
 * The target to route. A proxy may send the absolute form, such as `GET http://host/v1/orders`; only its path is
 * routed. Every other target without a leading slash (`*`, `*v1/orders`, `ftp://host/x`) becomes a path without a
 * route. Otherwise the router would serve `*v1/orders` as `/v1/orders`, and Nest would respond to such targets in a
 * hook that runs before the authenticator.
 */
export function toOriginForm(target: string): string {
  if (target.charCodeAt(0) === 47 /* / */) return target;
  const scheme = /^https?:\/\/[^/?#]*/i.exec(target);
  if (!scheme) return `/${target}`;
  const rest = target.slice(scheme[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

const CLIENT_REQUEST_ID = /^[\w.-]{1,64}$/;

/** Reports a call that reached Fastify (D38). */
export function recordCall(
  recorder: CallRecorder,
  call: EdgeCall,
  request: FastifyRequest,
  status: number,
): void {
  const { startedAtMs, authResult, replayOf, errorCode, span } = request;
  const traceId = span?.context?.traceId ?? null;
  const route = routeOf(request);
  recordResponse(recorder, call, { status, startedAtMs, authResult, errorCode, route, replayOf, traceId });
  if (span) endCallSpan(span, request, status);
}

interface ResponseFacts {
  readonly status: number;
  readonly startedAtMs: number;
  readonly authResult: AuthResult | null;
  readonly errorCode: ErrorCode | null;
  readonly route?: string | null;
  readonly replayOf?: string | null;
  readonly traceId?: string | null;
}

/** Reports any call whose head was read. */
export function recordResponse(recorder: CallRecorder, call: EdgeCall, response: ResponseFacts): void {
  const clientRequestId = call.headers['x-request-id'];
  recorder.record({
    requestId: call.requestId,
    clientRequestId:
      typeof clientRequestId === 'string' && CLIENT_REQUEST_ID.test(clientRequestId) ? clientRequestId : null,
    method: call.method,
    route: response.route ?? null,
    path: pathOf(toOriginForm(call.url)),
    status: response.status,
    latencyMs: performance.now() - response.startedAtMs,
    keyId: response.authResult?.keyId ?? null,
    partnerId: response.authResult?.partnerId ?? null,
    mode: response.authResult?.mode ?? null,
    remoteAddress: call.remoteAddress,
    replayOf: response.replayOf ?? null,
    finishedAt: new Date(),
    errorCode: response.errorCode,
    traceId: response.traceId ?? null,
  });
}

/** Reports a request that Node's HTTP parser rejected: caller and target are unknown. */
export function recordUnreadable(
  recorder: CallRecorder,
  requestId: string,
  remoteAddress: string,
  status: number,
  errorCode: ErrorCode,
): void {
  recorder.record({
    requestId,
    clientRequestId: null,
    method: '-',
    route: null,
    path: '-',
    status,
    latencyMs: 0,
    keyId: null,
    partnerId: null,
    mode: null,
    remoteAddress,
    replayOf: null,
    finishedAt: new Date(),
    errorCode,
    traceId: null,
  });
}
