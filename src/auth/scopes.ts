import { SetMetadata } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { Scope } from '../common/scopes.js';
import { AppError } from '../common/errors/index.js';
import { routeHandlers } from '../infra/http/index.js';

const SCOPES = 'scopes';

/** The caller needs one of these scopes; `any` accepts every caller, for the routes of its own session. */
export type NeededScopes = readonly Scope[] | 'any';

/** Scopes of a route: the caller must hold one of them. */
export const NeedsScope = (...scopes: readonly Scope[] | readonly ['any']): MethodDecorator =>
  SetMetadata(SCOPES, scopes[0] === 'any' ? 'any' : scopes);

/** The route's scopes; null when it declares none. */
export function scopesOf(handler: object): NeededScopes | null {
  return (Reflect.getMetadata(SCOPES, handler) as NeededScopes | undefined) ?? null;
}

/** The credential of a call, for `assertScope`. */
interface ScopeHolder {
  /** Subject of the refusal's first sentence. */
  readonly name: string;
  /** Null holds every scope. */
  readonly scopes: readonly Scope[] | null;
  readonly cure?: string;
}

/** @throws AppError `forbidden`, which names the scope, when the holder has none of the route's scopes */
export function assertScope(
  handler: object,
  { name, scopes, cure = 'Ask for access that does.' }: ScopeHolder,
): void {
  const needed = scopesOf(handler);
  if (needed === 'any' || needed?.some((scope) => scopes?.includes(scope) ?? true)) return;
  throw new AppError('forbidden', {
    detail: `${name} does not include ${needed?.map(scopeInWords).join(' or ') ?? 'this operation'}. ${cure}`,
  });
}

/** `API keys (keys:read)`: sessions belong to people, who do not know the names of scopes. */
function scopeInWords(scope: Scope): string {
  const [resource] = scope.split(':');
  return `${resource === 'keys' ? 'API keys' : resource} (${scope})`;
}

/** A guard that calls `assertScope`. */
type ScopedGuard = new (...args: never[]) => unknown;

/**
 * Closed by default: a route behind this guard without a scope stops the boot.
 * @throws Error that names every such route
 */
export function assertEveryRouteNeedsAScope(discovery: DiscoveryService, guard: ScopedGuard): void {
  const open = routeHandlers(discovery).filter(
    ({ guards, handler }) => guards.includes(guard as never) && scopesOf(handler) === null,
  );
  if (open.length > 0) throw new Error(`routes without a scope: ${open.map(({ name }) => name).join(', ')}`);
}
