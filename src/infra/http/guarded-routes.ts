import { GUARDS_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';

const AUTHENTICATES = Symbol('authenticates');

/** Marks a guard class as one that establishes who is calling. */
export function Authenticates(): ClassDecorator {
  return (guard) => void Reflect.defineMetadata(AUTHENTICATES, true, guard);
}

/**
 * Closed by default: a route whose class and method have no authenticating guard stops the boot (D7).
 * @throws Error that names every such route.
 */
export function assertEveryRouteIsGuarded(discovery: DiscoveryService): void {
  const open = discovery.getControllers().flatMap(({ metatype }) => (metatype ? openRoutesOf(metatype) : []));
  if (open.length > 0) throw new Error(`routes without an authenticating guard: ${open.join(', ')}`);
}

function openRoutesOf(controller: NonNullable<unknown>): string[] {
  const type = controller as { name: string; prototype: Record<string, unknown> };
  if (hasGuard(type)) return [];
  return new MetadataScanner()
    .getAllMethodNames(type.prototype)
    .filter((name) => Reflect.hasMetadata(METHOD_METADATA, type.prototype[name] as object))
    .filter((name) => !hasGuard(type.prototype[name] as object))
    .map(
      (name) =>
        `${type.name}.${name} (${String(Reflect.getMetadata(PATH_METADATA, type.prototype[name] as object))})`,
    );
}

function hasGuard(target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, target) ?? []) as unknown[];
  return guards.some(
    (guard) => typeof guard === 'function' && Reflect.getMetadata(AUTHENTICATES, guard) === true,
  );
}
