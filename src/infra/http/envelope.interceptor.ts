import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import type { Page } from '../../common/page.js';

/** A list response; the envelope adds `has_more` and `next_cursor` (D5). `beside` holds fields next to `data`. */
export class ListResponse<T> {
  constructor(
    readonly page: Page<T>,
    readonly beside: Readonly<Record<string, unknown>> = {},
  ) {}
}

/**
 * A response whose JSON after `"request_id":"...",` is already serialized, e.g. a cached page of the catalog. `fields`
 * has no outer braces: `"data":[...],"has_more":false`.
 */
export class SerializedResponse {
  constructor(readonly fields: string) {}
}

/**
 * A list with items already serialized as bytes: encoding 14 KB of text again for every call of a cached page costs
 * more than the rest of the response.
 */
export class SerializedListResponse {
  constructor(
    readonly items: Buffer,
    readonly nextCursor: string | null,
  ) {}
}

/** 304: the one response without a body. */
export class NotModified {}

const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';

/** Adds the request id to every success body (spec section 4, D5). The ProblemFilter writes errors. */
@Injectable()
export class EnvelopeInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const requestId = http.getRequest<FastifyRequest>().id;
    const reply = http.getResponse<FastifyReply>();
    return next.handle().pipe(map((result: unknown) => wrap(result, requestId, reply)));
  }
}

function wrap(result: unknown, requestId: string, reply: FastifyReply): unknown {
  // The IdempotencyInterceptor has already rendered a response given as bytes.
  if (Buffer.isBuffer(result)) return result;
  if (result instanceof NotModified) {
    void reply.status(304);
    return undefined;
  }
  void reply.header('content-type', JSON_CONTENT_TYPE);
  if (result instanceof SerializedResponse) return `{"request_id":"${requestId}",${result.fields}}`;
  if (result instanceof SerializedListResponse) return splice(result, requestId);
  if (result instanceof ListResponse)
    return JSON.stringify(listBody(result as ListResponse<unknown>, requestId));
  return JSON.stringify({ request_id: requestId, data: result });
}

function listBody({ page, beside }: ListResponse<unknown>, requestId: string): unknown {
  return {
    request_id: requestId,
    data: page.items,
    ...beside,
    has_more: page.hasMore,
    next_cursor: page.nextCursor,
  };
}

function splice({ items, nextCursor }: SerializedListResponse, requestId: string): Buffer {
  const cursor = nextCursor === null ? 'null' : `"${nextCursor}"`;
  // Both values are ASCII: one of our ids, and base64url.
  const head = `{"request_id":"${requestId}","data":`;
  const tail = `,"has_more":${nextCursor !== null},"next_cursor":${cursor}}`;
  const bytes = Buffer.allocUnsafe(head.length + items.length + tail.length);
  bytes.write(head, 0, 'latin1');
  items.copy(bytes, head.length);
  bytes.write(tail, head.length + items.length, 'latin1');
  return bytes;
}

/**
 * Sets ETag and Cache-Control, and returns whether the caller already has this version: `If-None-Match` as a list or
 * `*`, compared weakly (RFC 9110 section 13.1.2).
 */
export function isNotModified(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  void reply
    .header('etag', etag)
    .header('cache-control', 'private, no-cache')
    .header('vary', 'Authorization');
  const header = request.headers['if-none-match'];
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const wanted = opaque(etag);
  return header.split(',').some((candidate) => opaque(candidate.trim()) === wanted);
}

function opaque(etag: string): string {
  return etag.startsWith('W/') ? etag.slice(2) : etag;
}
