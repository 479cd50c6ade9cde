import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import type { Page } from '../../common/page.js';

/** A list answer; the envelope adds `has_more` and `next_cursor` (D5). */
export class ListResponse<T> {
  constructor(readonly page: Page<T>) {}
}

/**
 * An answer whose JSON after `"request_id":"...",` was serialized before, e.g. a cached page of the catalog.
 * `fields` has no outer braces: `"data":[...],"has_more":false`.
 */
export class SerializedResponse {
  constructor(readonly fields: string) {}
}

/**
 * A list whose items were serialized before, as bytes: encoding 14 KB of text again for every call of a cached page
 * costs more than all the rest of the answer.
 */
export class SerializedListResponse {
  constructor(
    readonly items: Buffer,
    readonly nextCursor: string | null,
  ) {}
}

/** 304: the one answer without a body (D5). */
export class NotModified {}

const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';

/** Puts the request id into every success body (spec section 4, D5). Errors are written by the ProblemFilter. */
@Injectable()
export class EnvelopeInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const requestId = http.getRequest<FastifyRequest>().id;
    const reply = http.getResponse<FastifyReply>();
    return next.handle().pipe(map((answer: unknown) => wrap(answer, requestId, reply)));
  }
}

function wrap(answer: unknown, requestId: string, reply: FastifyReply): unknown {
  // Bytes are an answer that the IdempotencyInterceptor has already rendered.
  if (Buffer.isBuffer(answer)) return answer;
  if (answer instanceof NotModified) {
    void reply.status(304);
    return '';
  }
  void reply.header('content-type', JSON_CONTENT_TYPE);
  if (answer instanceof SerializedResponse) return `{"request_id":"${requestId}",${answer.fields}}`;
  if (answer instanceof SerializedListResponse) return splice(answer, requestId);
  if (answer instanceof ListResponse)
    return JSON.stringify(listBody(answer.page as Page<unknown>, requestId));
  return JSON.stringify({ request_id: requestId, data: answer });
}

function listBody(page: Page<unknown>, requestId: string): unknown {
  return {
    request_id: requestId,
    data: page.items,
    has_more: page.hasMore,
    next_cursor: page.nextCursor,
  };
}

function splice({ items, nextCursor }: SerializedListResponse, requestId: string): Buffer {
  const cursor = nextCursor === null ? 'null' : `"${nextCursor}"`;
  // Both are ASCII: an id of ours and base64url.
  const head = `{"request_id":"${requestId}","data":`;
  const tail = `,"has_more":${nextCursor !== null},"next_cursor":${cursor}}`;
  const bytes = Buffer.allocUnsafe(head.length + items.length + tail.length);
  bytes.write(head, 0, 'latin1');
  items.copy(bytes, head.length);
  bytes.write(tail, head.length + items.length, 'latin1');
  return bytes;
}
