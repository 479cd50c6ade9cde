import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import type { Page } from '../../common/page.js';

/** A list answer; the envelope adds `has_more` and `next_cursor` (D5). */
export class ListAnswer<T> {
  constructor(readonly page: Page<T>) {}
}

/**
 * An answer whose JSON after `"request_id":"...",` was serialized before, e.g. a cached page of the catalog.
 * `fields` has no outer braces: `"data":[...],"has_more":false`.
 */
export class SerializedAnswer {
  constructor(readonly fields: string) {}
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
  if (answer instanceof SerializedAnswer) return `{"request_id":"${requestId}",${answer.fields}}`;
  if (answer instanceof ListAnswer) return JSON.stringify(listBody(answer.page as Page<unknown>, requestId));
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
