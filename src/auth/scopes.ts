import { SetMetadata } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import type { AdminScope } from '../common/scopes.js';
import { AppError } from '../common/errors/index.js';
import { routeHandlers } from '../infra/http/index.js';

const SCOPES = 'scopes';

/** The caller needs one of these scopes; `any` accepts every caller, for the routes of its own session. */
export type NeededScopes = readonly AdminScope[] | 'any';

/** Scopes of a route of the admin API or portal: the caller must hold one of them. */
export const NeedsScope = (...scopes: readonly AdminScope[] | readonly ['any']): MethodDecorator =>
  SetMetadata(SCOPES, scopes[0] === 'any' ? 'any' : scopes);

/** The route's scopes; null when it declares none. */
export function scopesOf(handler: object): NeededScopes | null {
  return (Reflect.getMetadata(SCOPES, handler) as NeededScopes | undefined) ?? null;
}

/** @throws AppError `forbidden`, which names the scope, when `held` includes none of the route's scopes */
export function assertScope(handler: object, held: readonly AdminScope[], holder: string): void {
  const needed = scopesOf(handler);
  if (needed === 'any' || needed?.some((scope) => held.includes(scope))) return;
  throw new AppError('forbidden', {
    detail: `${holder} does not include ${needed?.map(scopeInWords).join(' or ') ?? 'this operation'}. Ask for access that does.`,
  });
}

/** `API keys (keys:read)`: sessions belong to people, who do not know the names of scopes. */
function scopeInWords(scope: AdminScope): string {
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
