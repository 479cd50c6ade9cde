import { previewProcess } from '../../src/apps/openapi.js';
import { PortalModule } from '../../src/apps/portal.app.js';
import type { ApiAnswer } from '../harness/index.js';
import { type KnownRoute, knownRoutes } from '../harness/known-routes.js';
import type { PortalBrowser } from '../harness/portal.js';

export interface PortalRoute extends KnownRoute {
  /** The path segment before the id, e.g. `api-keys`. Null when the path has no id. */
  readonly noun: string | null;
}

export async function portalRoutes(): Promise<PortalRoute[]> {
  const routes = await knownRoutes(PortalModule.of(previewProcess()), '/portal/v1/');
  return routes.map((route) => ({
    ...route,
    noun: /([\w-]+)\/:(?!package_id)/.exec(route.path)?.[1] ?? null,
  }));
}

const BODIES: Readonly<Record<string, object>> = {
  'POST api-keys': { mode: 'sandbox' },
  'POST webhook-endpoints': { mode: 'sandbox', url: 'https://partner.example/hook' },
  'PATCH webhook-endpoints/:id': { description: 'changed' },
  'PATCH brand': { name: 'Acme Travel' },
  'PATCH esims/:id': { label: 'changed' },
  'PUT esims/:id/auto-topup': {
    ...{ at_percent: 80, package_id: 'pkg_fr_topup_1gb_7d', max_times: 1 },
    max_price: { amount: 100_000, currency: 'USD' },
  },
  'POST webhook-endpoints/:id/replay': { since: '2026-01-01T00:00:00.000Z' },
  'POST signature-doctor': { endpoint_id: 'whe_01KAEXAMPLE000000000000000', headers: {}, body: '' },
};
const LISTS_WITHOUT_MODE = ['wallet', 'wallet/transactions', 'session'];

/** Calls a route like a browser, with a valid body, and with a mode for lists. */
export function callRoute(browser: PortalBrowser, route: PortalRoute, id: string | null): Promise<ApiAnswer> {
  const body = BODIES[route.name];
  const path = route.path.replace(/:\w+/, id ?? 'x');
  const isList = route.method === 'GET' && route.noun === null && !LISTS_WITHOUT_MODE.includes(route.path);
  return browser.call(
    route.method,
    isList ? `${path}?mode=sandbox` : path,
    body === undefined ? {} : { body },
  );
}
