import type { RequestMethod } from '@nestjs/common';
import { GUARDS_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';

const AUTHENTICATES = Symbol('authenticates');

/** Marks a guard class that authenticates callers. */
export function Authenticates(): ClassDecorator {
  return (guard) => void Reflect.defineMetadata(AUTHENTICATES, true, guard);
}

type GuardClass = (new (...args: never[]) => unknown) & { readonly name: string };

/** One handler of a controller, as its decorators describe it. */
export interface RouteHandler {
  /** Name for messages: `OrdersController.placeOrder (/)`. */
  readonly name: string;
  readonly controller: { readonly name: string };
  readonly handler: object;
  readonly handlerName: string;
  readonly method: RequestMethod;
  /** Includes the controller's part, such as `/v1/orders/:id/cancel`. */
  readonly path: string;
  /** Guards of the class, then those of the method. */
  readonly guards: readonly GuardClass[];
}

/** Every handler of every controller of an app. */
export function routeHandlers(discovery: DiscoveryService): RouteHandler[] {
  return discovery
    .getControllers()
    .flatMap(({ metatype }) => (metatype ? handlersOf(metatype as ControllerClass) : []));
}

/**
 * Closed by default: a route whose class and method have no authenticating guard stops the boot (D7).
 * @throws Error that names every such route
 */
export function assertEveryRouteIsGuarded(discovery: DiscoveryService): void {
  const open = routeHandlers(discovery).filter(
    ({ guards }) => !guards.some((guard) => Reflect.getMetadata(AUTHENTICATES, guard) === true),
  );
  if (open.length > 0) {
    throw new Error(`routes without an authenticating guard: ${open.map(({ name }) => name).join(', ')}`);
  }
}

interface ControllerClass {
  readonly name: string;
  readonly prototype: Record<string, object>;
}

function handlersOf(controller: ControllerClass): RouteHandler[] {
  const { name, prototype } = controller;
  return new MetadataScanner()
    .getAllMethodNames(prototype)
    .filter((handlerName) => Reflect.hasMetadata(METHOD_METADATA, prototype[handlerName]!))
    .map((handlerName) => {
      const handler = prototype[handlerName]!;
      const own = pathOf(handler);
      return {
        name: `${name}.${handlerName} (${own})`,
        controller,
        handler,
        handlerName,
        method: Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod,
        path: joinPaths(pathOf(controller), own),
        guards: [...guardsOf(controller), ...guardsOf(handler)],
      };
    });
}

function pathOf(target: object): string {
  return String(Reflect.getMetadata(PATH_METADATA, target) ?? '');
}

function joinPaths(...parts: readonly string[]): string {
  const names = parts.flatMap((part) => part.split('/')).filter((name) => name !== '');
  return `/${names.join('/')}`;
}

function guardsOf(target: object): GuardClass[] {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, target) ?? []) as unknown[];
  return guards.filter((guard): guard is GuardClass => typeof guard === 'function');
}
