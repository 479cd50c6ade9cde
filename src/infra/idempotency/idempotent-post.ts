import { createHash } from 'node:crypto';
import {
  applyDecorators,
  type CallHandler,
  createParamDecorator,
  type ExecutionContext,
  HttpCode,
  HttpStatus,
  Injectable,
  type NestInterceptor,
  Post,
  RequestMethod,
  SetMetadata,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { HTTP_CODE_METADATA, INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import type { DiscoveryService } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import { canonicalJson } from '../../common/canonical-json.js';
import type { ErrorCode } from '../../common/errors/index.js';
import { type RouteHandler, routeHandlers } from '../http/index.js';
import { ApiRefusals, Responds, type RespondsOptions } from '../http/openapi/responds.js';
import type { IdempotencyKey, RenderedResponse } from './idempotency-key.js';

declare module 'fastify' {
  interface FastifyRequest {
    idempotencyKey?: IdempotencyKey;
  }
}

/** The key's owner; every principal of a guarded route has it (D17). */
export interface IdempotencyOwner {
  readonly idempotencyScope: string;
}

export interface IdempotentPostOptions extends RespondsOptions {
  /** Success status of the route, the document and the stored response, stated only here. */
  readonly status: NonNullable<RespondsOptions['status']>;
  /** The model of `data`. */
  readonly response: Type<unknown>;
  /** Refusal codes of this operation, in addition to those of every operation. */
  readonly refusals?: readonly ErrorCode[];
}

/**
 * A POST that takes effect once per `Idempotency-Key`. The handler takes `@IdempotencyKeyParam()` and returns the
 * result of `IdempotentExecutor.execute`.
 */
export function IdempotentPost(
  path: string,
  { response, refusals = [], ...options }: IdempotentPostOptions,
): MethodDecorator {
  return applyDecorators(
    Post(path),
    HttpCode(options.status),
    Responds(response, options),
    ApiRefusals(...refusals),
    UseInterceptors(IdempotencyInterceptor),
  );
}

const NO_KEY_NEEDED = Symbol('no-key-needed');

/** Marks a POST that is safe to retry: it spends a single-use code, or changes nothing. */
export const NoIdempotencyKey = (): MethodDecorator => SetMetadata(NO_KEY_NEEDED, true);

/** Injects the key that a handler passes to `IdempotentExecutor.execute`. */
export const IdempotencyKeyParam = createParamDecorator(
  (_: unknown, context: ExecutionContext): IdempotencyKey => {
    const key = context.switchToHttp().getRequest<FastifyRequest>().idempotencyKey;
    if (!key) throw new Error('a route with @IdempotencyKeyParam() needs the IdempotencyInterceptor');
    return key;
  },
);

/**
 * Computes the key before the handler and writes the rendered response after it. It claims nothing, because Nest runs
 * interceptors before pipes, and a validation failure must leave no claim (D16).
 */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    request.idempotencyKey = toIdempotencyKey(request, successStatusOf(context.getHandler()));
    return next
      .handle()
      .pipe(
        map((response) => write(response as RenderedResponse, request, http.getResponse<FastifyReply>())),
      );
  }
}

/** Whether the interceptor applies to this handler, through its method or its class. */
function isIdempotent({ controller, handler }: RouteHandler): boolean {
  return [controller, handler].some((target) =>
    ((Reflect.getMetadata(INTERCEPTORS_METADATA, target) ?? []) as unknown[]).includes(
      IdempotencyInterceptor,
    ),
  );
}

/**
 * Closed by default: a POST without the interceptor stops the boot, because it would take effect with every retry.
 * @throws Error that names every such route
 */
export function assertEveryPostIsIdempotent(discovery: DiscoveryService): void {
  const open = routeHandlers(discovery).filter(
    (route) =>
      route.method === RequestMethod.POST &&
      !isIdempotent(route) &&
      Reflect.getMetadata(NO_KEY_NEEDED, route.handler) !== true,
  );
  if (open.length > 0)
    throw new Error(`POST routes without idempotency: ${open.map(({ name }) => name).join(', ')}`);
}

/** Nest's own success status for the handler's POST. */
function successStatusOf(handler: object): number {
  return (Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined) ?? HttpStatus.CREATED;
}

function toIdempotencyKey(request: FastifyRequest, successStatus: number): IdempotencyKey {
  const header = request.headers['idempotency-key'];
  const path = request.url.split('?', 1)[0] ?? '';
  const fingerprint = createHash('sha256')
    .update(`${request.method}\n${path}\n${canonicalJson(request.body ?? {})}`)
    .digest();
  const scope = (request.principal as IdempotencyOwner).idempotencyScope;
  return {
    scope,
    slotOwner: request.authResult?.slotOwner ?? scope,
    key: typeof header === 'string' ? header : null,
    fingerprint,
    requestId: request.id,
    successStatus,
  };
}

function write(response: RenderedResponse, request: FastifyRequest, reply: FastifyReply): Buffer {
  void reply.status(response.status).header('content-type', response.contentType);
  request.errorCode = response.errorCode;
  if (response.location !== null) void reply.header('location', response.location);
  if (response.replayed) {
    request.replayOf = response.requestId;
    void reply.header('x-request-id', response.requestId).header('idempotent-replayed', 'true');
  }
  // Bytes, not text: Fastify would add a charset to the content type of a problem.
  return Buffer.from(response.body);
}
