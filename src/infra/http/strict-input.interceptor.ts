import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { FastifyRequest } from 'fastify';
import type { Observable } from 'rxjs';
import { type FieldError, ValidationFailed } from '../../common/errors/index.js';

interface DeclaredInput {
  readonly query: boolean;
  readonly body: boolean;
}

/**
 * Refuses a query or body for a handler that declares none, so that no operation ignores input (D9). An operation
 * without fields takes no body or `{}`.
 */
@Injectable()
export class StrictInputInterceptor implements NestInterceptor {
  private readonly declared = new Map<unknown, DeclaredInput>();

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const declared = this.inputOf(context);
    const errors: FieldError[] = [];
    if (!declared.query) errors.push(...unexpectedQuery(request.query));
    if (!declared.body) errors.push(...unexpectedBody(request.body));
    if (errors.length > 0) throw new ValidationFailed(errors);
    return next.handle();
  }

  private inputOf(context: ExecutionContext): DeclaredInput {
    const handler = context.getHandler();
    let declared = this.declared.get(handler);
    if (!declared) {
      const metadata = (Reflect.getMetadata(ROUTE_ARGS_METADATA, context.getClass(), handler.name) ??
        {}) as object;
      const kinds = new Set(Object.keys(metadata).map((key) => Number(key.split(':')[0])));
      declared = { query: kinds.has(RouteParamtypes.QUERY), body: kinds.has(RouteParamtypes.BODY) };
      this.declared.set(handler, declared);
    }
    return declared;
  }
}

function unexpectedQuery(query: unknown): FieldError[] {
  if (typeof query !== 'object' || query === null) return [];
  return Object.keys(query)
    .slice(0, 1)
    .map(() => ({
      pointer: '?',
      code: 'unknown_parameter',
      message: 'This operation takes no query parameters.',
    }));
}

function unexpectedBody(body: unknown): FieldError[] {
  if (body === undefined) return [];
  const empty =
    typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
  return empty ? [] : [{ pointer: '', code: 'unexpected_body', message: 'This operation takes no fields.' }];
}
