import type { FastifyRequest } from 'fastify';
import { parseTraceparent, type Span, type Tracer } from '../../tracing/index.js';

/** What a caller may name a series or a span after. */
export const METHODS: ReadonlySet<string> = new Set([
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
]);

/** The pattern, such as `/v1/orders/:id`; null for a path that no route has. */
export function routeOf(request: FastifyRequest): string | null {
  return request.is404 ? null : (request.routeOptions.url ?? null);
}

/**
 * The first span of a trace of ours, named by its route. What the caller's `traceparent` names is linked and no parent: a
 * stranger decides neither which of our traces are kept nor what they are part of (D53).
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

/** The answer has left, or the caller is gone. */
export function endCallSpan(span: Span, { authResult, errorCode }: FastifyRequest, status: number): void {
  span.set({
    'http.response.status_code': status,
    'esim.mode': authResult?.mode,
    'esim.error_code': errorCode,
  });
  if (status >= 500) span.fail(String(status));
  span.end();
}
