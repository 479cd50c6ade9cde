import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../common/errors/index.js';
import { Authenticates } from '../infra/http/index.js';
import { PortalPrincipal } from './principal.js';
import { assertScope } from './scopes.js';

/** Asserts that the edge has found a session, and that it holds the route's scope (D50). */
@Authenticates()
@Injectable()
export class PortalSessionGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (!(principal instanceof PortalPrincipal)) throw new AppError('unauthorized');
    assertScope(context.getHandler(), { name: 'Your access', scopes: principal.session.scopes });
    return true;
  }
}

/** For the one route without a session: its body is the credential, which the use case checks. */
@Authenticates()
@Injectable()
export class PortalCodeGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}
