import { createHash } from 'node:crypto';
import {
  type CallHandler,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import { canonicalJson } from '../../common/canonical-json.js';
import type { IdempotentCall, RenderedAnswer } from './idempotent-call.js';

declare module 'fastify' {
  interface FastifyRequest {
    idempotentCall?: IdempotentCall;
  }
}

/** Who the key belongs to; every principal of a guarded route has it (D17). */
export interface IdempotencyOwner {
  readonly idempotencyScope: string;
}

/** Gives a handler the call that it passes to `OnceOnly.run`. */
export const Idempotent = createParamDecorator((_: unknown, context: ExecutionContext): IdempotentCall => {
  const call = context.switchToHttp().getRequest<FastifyRequest>().idempotentCall;
  if (!call) throw new Error('a route with @Idempotent() needs the IdempotencyInterceptor');
  return call;
});

/**
 * Names the call before the handler and writes the rendered answer after it. It claims nothing: Nest runs
 * interceptors before pipes, and a validation failure must leave no claim (D16).
 */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    request.idempotentCall = describeCall(request);
    return next
      .handle()
      .pipe(map((answer) => write(answer as RenderedAnswer, request, http.getResponse<FastifyReply>())));
  }
}

function describeCall(request: FastifyRequest): IdempotentCall {
  const header = request.headers['idempotency-key'];
  const path = request.url.split('?', 1)[0] ?? '';
  const fingerprint = createHash('sha256')
    .update(`${request.method}\n${path}\n${canonicalJson(request.body ?? {})}`)
    .digest();
  return {
    scope: (request.principal as IdempotencyOwner).idempotencyScope,
    key: typeof header === 'string' ? header : null,
    fingerprint,
    requestId: request.id,
  };
}

function write(answer: RenderedAnswer, request: FastifyRequest, reply: FastifyReply): Buffer {
  void reply.status(answer.status).header('content-type', answer.contentType);
  request.errorCode = answer.errorCode;
  if (answer.location !== null) void reply.header('location', answer.location);
  if (answer.replayed) {
    request.replayOf = answer.requestId;
    void reply.header('x-request-id', answer.requestId).header('idempotent-replayed', 'true');
  }
  // Bytes, not text: Fastify would add a charset to the content type of a problem.
  return Buffer.from(answer.body);
}
