import { RequestMethod } from '@nestjs/common';
import { DiscoveryService, ModulesContainer, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { previewProcess } from '../../src/apps/openapi.js';
import { PortalModule } from '../../src/apps/portal.app.js';
import { scopeOf } from '../../src/auth/index.js';
import { routeHandlers } from '../../src/infra/http/index.js';
import type { ApiAnswer } from '../harness/index.js';
import type { PortalBrowser } from '../harness/portal.js';

/** One route of the portal, read from the code. */
export interface PortalRoute {
  readonly name: string;
  readonly method: string;
  /** What follows `/portal/v1/`, such as `api-keys/:id/revoke`. */
  readonly path: string;
  readonly scope: string | null;
  /** The segment before the id, such as `api-keys`; null when the path has none. */
  readonly noun: string | null;
}

export async function portalRoutes(): Promise<PortalRoute[]> {
  const app = await NestFactory.create<NestFastifyApplication>(
    PortalModule.of(previewProcess()),
    new FastifyAdapter(),
    { preview: true, logger: ['error'] },
  );
  try {
    return routeHandlers(new DiscoveryService(app.get(ModulesContainer))).map((route) => {
      const path = route.path.replace('/portal/v1/', '');
      const method = RequestMethod[route.method];
      const noun = /([\w-]+)\/:/.exec(path)?.[1] ?? null;
      return { name: `${method} ${path}`, method, path, scope: scopeOf(route.handler), noun };
    });
  } finally {
    await app.close();
  }
}

const BODIES: Readonly<Record<string, object>> = {
  'POST api-keys': { mode: 'sandbox' },
  'POST webhook-endpoints': { mode: 'sandbox', url: 'https://partner.example/hook' },
  'PATCH webhook-endpoints/:id': { description: 'changed' },
  'POST webhook-endpoints/:id/replay': { since: '2026-01-01T00:00:00.000Z' },
  'POST signature-doctor': { endpoint_id: 'whe_01KAEXAMPLE000000000000000', headers: {}, body: '' },
};
const LISTS_WITHOUT_MODE = ['wallet', 'wallet/transactions', 'session'];

/** Calls a route as well as a browser can: with a body that it takes, and a mode where it lists. */
export function callRoute(browser: PortalBrowser, route: PortalRoute, id: string | null): Promise<ApiAnswer> {
  const body = BODIES[route.name];
  const path = route.path.replace(/:\w+/, id ?? '');
  const isList = route.method === 'GET' && route.noun === null && !LISTS_WITHOUT_MODE.includes(route.path);
  return browser.call(
    route.method,
    isList ? `${path}?mode=sandbox` : path,
    body === undefined ? {} : { body },
  );
}
