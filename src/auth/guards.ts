import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { AppError, NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import { Authenticates } from '../infra/http/index.js';
import { AdminPrincipal, PartnerPrincipal, PortalPrincipal } from './principal.js';
import { assertScope } from './scopes.js';

/**
 * Asserts that the edge authenticated a partner's key. The check itself runs before the body is read, where a guard
 * cannot be (D7); a request that came past the edge in any other way is refused here.
 */
@Authenticates()
@Injectable()
export class BearerKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (!(principalOf(context) instanceof PartnerPrincipal)) throw new AppError('unauthorized');
    return true;
  }
}

/** Asserts that the edge authenticated an admin token, and that it holds the scope of the route (D3). */
@Authenticates()
@Injectable()
export class AdminTokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const principal = principalOf(context);
    if (!(principal instanceof AdminPrincipal)) throw new AppError('unauthorized');
    assertScope(context.getHandler(), principal.scopes, 'admin token');
    return true;
  }
}

/** Sandbox keys only; refused before any lookup or claim (D26). Stands behind `BearerKeyGuard`. */
@Injectable()
export class SandboxOnlyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const principal = principalOf(context);
    if (principal instanceof PartnerPrincipal && principal.mode === 'sandbox') return true;
    throw new AppError('sandbox_only');
  }
}

/** The partner, mode and key of the call. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext) => principalOf(context));

/**
 * Whose rows a handler of the admin API and the portal reaches: those of the session's partner, or of `:pid` in the path.
 * @throws NotFound for a malformed id
 */
export const PartnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const principal = principalOf(context);
  if (principal instanceof PortalPrincipal) return principal.partnerId;
  const { pid } = context.switchToHttp().getRequest<FastifyRequest<{ Params: { pid: string } }>>().params;
  if (!isId('ptn', pid)) throw new NotFound();
  return pid;
});

function principalOf(context: ExecutionContext): unknown {
  return context.switchToHttp().getRequest<FastifyRequest>().principal;
}
