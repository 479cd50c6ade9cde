import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { AdminPrincipal } from '../auth/index.js';
import type { AuditEntry } from './audit-log.js';

/** Who makes an administrative change, and in which call: the part of an audit entry that the caller knows. */
export type ChangeAuthor = Pick<AuditEntry, 'actor' | 'requestId'>;

/** Gives a handler behind the `AdminTokenGuard` the author that it passes to its use case. */
export const Author = createParamDecorator((_: unknown, context: ExecutionContext): ChangeAuthor => {
  const request = context.switchToHttp().getRequest<FastifyRequest>();
  return { actor: request.principal as AdminPrincipal, requestId: request.id };
});
