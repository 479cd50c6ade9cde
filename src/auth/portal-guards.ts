import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { type DiscoveryService, Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../common/errors/index.js';
import type { PortalScope } from '../common/portal-scopes.js';
import { Authenticates, routeHandlers } from '../infra/http/index.js';
import { PortalPrincipal } from './principal.js';

const SCOPE = 'portal-scope';

/** What a session must hold for this route; `any` for those of the session itself. */
export const NeedsScope = (scope: PortalScope | 'any'): MethodDecorator => SetMetadata(SCOPE, scope);

/** Asserts that the edge found a session, and that it holds the scope of the route (D50). */
@Authenticates()
@Injectable()
export class PortalSessionGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (!(principal instanceof PortalPrincipal)) throw new AppError('unauthorized');
    const scope = this.reflector.get<PortalScope | 'any' | undefined>(SCOPE, context.getHandler());
    if (scope === 'any' || (scope !== undefined && principal.session.scopes.includes(scope))) return true;
    throw new AppError('forbidden', { detail: `This session does not hold ${scope ?? 'what this needs'}.` });
  }
}

/** Of the one route without a session: its body is the credential, and the use case checks it. */
@Authenticates()
@Injectable()
export class PortalCodeGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

/** The scope that a route of the portal needs; null when it says none. */
export function scopeOf(handler: object): PortalScope | 'any' | null {
  return (Reflect.getMetadata(SCOPE, handler) as PortalScope | 'any' | undefined) ?? null;
}

/**
 * Closed by default: a portal route behind a session that names no scope stops the boot.
 * @throws Error that names every such route.
 */
export function assertEveryRouteNeedsAScope(discovery: DiscoveryService): void {
  const open = routeHandlers(discovery).filter(
    ({ guards, handler }) => guards.includes(PortalSessionGuard as never) && scopeOf(handler) === null,
  );
  if (open.length > 0)
    throw new Error(`portal routes without a scope: ${open.map(({ name }) => name).join(', ')}`);
}
