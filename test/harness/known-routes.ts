import { type DynamicModule, RequestMethod } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { type IdPrefix, newId } from '../../src/common/ids.js';
import { type NeededScopes, scopesOf } from '../../src/auth/index.js';
import { routeHandlers } from '../../src/infra/http/index.js';

/** One route of a port, read from the code. */
export interface KnownRoute {
  readonly name: string;
  readonly method: string;
  /** The path below the base of the port, e.g. `api-keys/:id/revoke`. */
  readonly path: string;
  /** Any one of these is sufficient. */
  readonly scopes: NeededScopes | null;
}

/** All routes of an app below `base`. */
export async function knownRoutes(module: DynamicModule, base: string): Promise<KnownRoute[]> {
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    preview: true,
    logger: ['error'],
  });
  try {
    return routeHandlers(new DiscoveryService(app.get(ModulesContainer))).map((route) => {
      const path = route.path.replace(base, '');
      const method = RequestMethod[route.method];
      return { name: `${method} ${path}`, method, path, scopes: scopesOf(route.handler) };
    });
  } finally {
    await app.close();
  }
}

/** The route's path with ids: those of `known` by the path segment before them, otherwise new ones, which get 404. */
export function withIds(
  path: string,
  known: Readonly<Record<string, string>>,
  prefixes: Readonly<Record<string, IdPrefix>>,
): string {
  return path.replace(
    /([\w-]+)\/:\w+/g,
    (_match, noun: string) => `${noun}/${known[noun] ?? newId(prefixes[noun]!)}`,
  );
}
