import { type CanActivate, createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { AppError, NotFound } from '../common/errors/index.js';
import { isId } from '../common/ids.js';
import { Authenticates } from '../infra/http/index.js';
import { AdminPrincipal, PartnerPrincipal, PortalPrincipal } from './principal.js';
import { assertScope } from './scopes.js';

/**
 * Asserts that the edge has authenticated a partner's key, and that it holds the route's scope (D62). The key check
 * itself runs before the body is read, where guards cannot run (D7). A request that bypassed the edge is refused here.
 */
@Authenticates()
@Injectable()
export class BearerKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const principal = principalOf(context);
    if (!(principal instanceof PartnerPrincipal)) throw new AppError('unauthorized');
    assertScope(context.getHandler(), {
      name: 'This API key',
      scopes: principal.scopes,
      cure: 'Use a key with this scope, or create one.',
    });
    return true;
  }
}

/** Asserts that the edge has authenticated an admin token, and that it holds the route's scope (D3). */
@Authenticates()
@Injectable()
export class AdminTokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const principal = principalOf(context);
    if (!(principal instanceof AdminPrincipal)) throw new AppError('unauthorized');
    assertScope(context.getHandler(), { name: 'This admin token', scopes: principal.scopes });
    return true;
  }
}

/** Accepts Sandbox keys only; refuses others before any lookup or claim (D26). Runs after `BearerKeyGuard`. */
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
 * The partner whose rows a handler of the admin API or portal may reach: that of the session, or `:pid` in the path.
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
