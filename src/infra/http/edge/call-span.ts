import type { FastifyRequest } from 'fastify';
import { parseTraceparent, type Span, type Tracer } from '../../tracing/index.js';

/** Methods that may appear in metrics and spans. */
export const METHODS: ReadonlySet<string> = new Set([
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
]);

/** The route pattern, such as `/v1/orders/:id`; null when no route matches. */
export function routeOf(request: FastifyRequest): string | null {
  return request.is404 ? null : (request.routeOptions.url ?? null);
}

/**
 * The first span of a new trace, named by its route. The caller's `traceparent` is linked instead of becoming the
 * parent, because a stranger must not decide which of our traces are kept, or what they belong to (D53).
 */
export function startCallSpan(tracer: Tracer, request: FastifyRequest): Span {
  const { headers, method: sent = '' } = request.raw;
  const method = METHODS.has(sent) ? sent : '_OTHER';
  const route = routeOf(request);
  const theirs = headers['traceparent'];
  return tracer.start({
    name: route === null ? method : `${method} ${route}`,
    kind: 'server',
    parent: null,
    links: [parseTraceparent(typeof theirs === 'string' ? theirs : null)],
    concerns: { requestId: request.id },
    attributes: { 'http.request.method': method, ...(route === null ? {} : { 'http.route': route }) },
  });
}

/** Called when the response was sent or the caller disconnected. */
export function endCallSpan(span: Span, { authResult, errorCode }: FastifyRequest, status: number): void {
  span.set({
    'http.response.status_code': status,
    'esim.mode': authResult?.mode,
    'esim.error_code': errorCode,
  });
  if (status >= 500) span.fail(String(status));
  span.end();
}
