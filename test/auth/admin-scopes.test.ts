import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Controller, Get, Module, UseGuards } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminModule } from '../../src/apps/admin.app.js';
import { previewProcess } from '../../src/apps/openapi.js';
import { AdminTokenGuard, assertEveryRouteNeedsAScope, BearerKeyGuard } from '../../src/auth/index.js';
import type { IdPrefix } from '../../src/common/ids.js';
import { ADMIN_SCOPES, type AdminScope } from '../../src/common/scopes.js';
import { type ApiAnswer, HttpClient, startTestService, type TestService } from '../harness/index.js';
import { type KnownRoute, knownRoutes, withIds } from '../harness/known-routes.js';
import { ADMIN_TOKEN } from '../harness/settings.js';

/** A valid body for each route, so that only the scope can be missing. */
const BODIES: Readonly<Record<string, object>> = {
  'POST catalog/sync': {},
  'POST deliveries/:id/resend': {},
  'POST orders/:id/reconcile': { action: 'requery', note: 'asked by support' },
  'POST topups/:id/reconcile': { action: 'requery', note: 'asked by support' },
  'POST refund-requests/:id/approve': { note: 'asked by support' },
  'POST refund-requests/:id/reject': { note: 'asked by support' },
  'POST partners': { name: 'Made by a token' },
  'PATCH partners/:pid': { name: 'Renamed by a token' },
  'POST partners/:pid/suspend': {},
  'POST partners/:pid/reinstate': {},
  'POST partners/:pid/api-keys': { mode: 'live' },
  'POST partners/:pid/api-keys/:id/rotate': {},
  'POST partners/:pid/api-keys/:id/revoke': {},
  'POST partners/:pid/portal-sessions': { actor: { id: 'user-1' } },
  'POST partners/:pid/portal-sessions/revoke-all': {},
  'DELETE partners/:pid/portal-sessions/:id': {},
  'PUT partners/:pid/price-list': { margin_bps: 1_000 },
  'PATCH partners/:pid/wallet': { currency: 'USD', low_balance_amount: null },
  'POST partners/:pid/wallet/deposits': { amount: { amount: 100, currency: 'USD' }, reference: 'dep-1' },
  'POST partners/:pid/wallet/adjustments': { amount: { amount: 5, currency: 'USD' }, reference: 'adj-1' },
  'POST partners/:pid/webhook-endpoints': { mode: 'live', url: 'https://partner.example/hook' },
  'PATCH partners/:pid/webhook-endpoints/:id': { description: 'changed by a token' },
  'POST partners/:pid/webhook-endpoints/:id/disable': {},
  'POST partners/:pid/webhook-endpoints/:id/enable': {},
  'POST partners/:pid/webhook-endpoints/:id/rotate-secret': {},
  'POST partners/:pid/webhook-endpoints/:id/rotate-secret/finish': {},
  'POST partners/:pid/webhook-endpoints/:id/test': {},
  'POST partners/:pid/webhook-endpoints/:id/replay': { since: '2026-01-01T00:00:00.000Z' },
  'DELETE partners/:pid/webhook-endpoints/:id': {},
  'POST replays/:id/cancel': {},
};
/** Routes that end objects which other routes need come last, in this order. */
const LAST = [
  'POST partners/:pid/api-keys/:id/revoke',
  'DELETE partners/:pid/webhook-endpoints/:id',
  'POST partners/:pid/suspend',
  'POST partners/:pid/reinstate',
];
const PREFIXES: Readonly<Record<string, IdPrefix>> = {
  deliveries: 'dlv',
  esims: 'esim',
  orders: 'ord',
  packages: 'pkg',
  topups: 'top',
  'refund-requests': 'rfr',
  replays: 'rpl',
  requests: 'req',
  'portal-sessions': 'ps',
};

const tokens = new Map(ADMIN_SCOPES.map((scope) => [scope, randomBytes(24).toString('hex')]));
const NOTHING = randomBytes(24).toString('hex');
const nameOf = (scope: AdminScope): string => scope.replace(':', '-');

let service: TestService;
let routes: readonly KnownRoute[];
/** The partner, one of its keys and one of its endpoints, by the path segment before their id. */
let known: Readonly<Record<string, string>>;

beforeAll(async () => {
  const named = [...tokens].map(([scope, token]) => `${nameOf(scope)}:${token}`);
  const ADMIN_TOKENS = [`portal:${ADMIN_TOKEN}`, `nothing:${NOTHING}`, ...named].join(',');
  const limits = ADMIN_SCOPES.map((scope) => `${nameOf(scope)}=${scope}`);
  const ADMIN_TOKEN_SCOPES = ['nothing=', ...limits].join(',');
  service = await startTestService({ role: 'admin', env: { ADMIN_TOKENS, ADMIN_TOKEN_SCOPES } });
  const all = await knownRoutes(AdminModule.of(previewProcess()), '/internal/v1/');
  routes = all.toSorted((a, b) => LAST.indexOf(a.name) - LAST.indexOf(b.name));
  const pid = await madeId('partners', { name: 'Scope Travel' });
  known = {
    partners: pid,
    'api-keys': await madeId(`partners/${pid}/api-keys`, { mode: 'live' }),
    'webhook-endpoints': await madeId(`partners/${pid}/webhook-endpoints`, {
      mode: 'live',
      url: 'https://partner.example/first',
    }),
  };
});
afterAll(() => service.stop());

async function madeId(path: string, body: object): Promise<string> {
  const made = await service.admin.post(`/internal/v1/${path}`, body);
  if (made.status !== 201) throw new Error(made.text);
  return made.body.data.id as string;
}

function call(token: string, { method, path, name }: KnownRoute): Promise<ApiAnswer> {
  const filled = withIds(path, known, PREFIXES);
  const body = BODIES[name];
  const client = new HttpClient(service.process.admin!.url, token);
  const query = name === 'GET search' ? '?q=anything' : '';
  return client.call(method, `/internal/v1/${filled}${query}`, body === undefined ? {} : { body });
}

/** The state that a refused call could have changed. The audit log contains each change of the admin API. */
async function state(): Promise<unknown> {
  const { rows } = await service.database.pool.query(
    `SELECT (SELECT count(*) FROM audit_log) AS changes, (SELECT count(*) FROM api_keys) AS keys,
            (SELECT count(*) FROM portal_sessions) AS sessions, (SELECT count(*) FROM ledger_entries) AS money,
            (SELECT json_agg(p ORDER BY p.id) FROM partners p) AS partners,
            (SELECT json_agg(w ORDER BY w.id) FROM webhook_endpoints w) AS endpoints`,
  );
  return rows[0];
}

describe('every route of the admin API', () => {
  it('declares a scope, which the operations page documents and these tests cover', () => {
    expect(routes.length).toBeGreaterThan(50);
    expect(routes.filter(({ scopes }) => scopes === null || scopes === 'any')).toEqual([]);
    const changing = routes.filter(({ method }) => method !== 'GET').map(({ name }) => name);
    expect(changing.toSorted()).toEqual(Object.keys(BODIES).toSorted());
    expect(new Set(routes.flatMap(({ scopes }) => scopes))).toEqual(new Set(ADMIN_SCOPES));
    const rows = readFileSync('docs/operations.md', 'utf8').matchAll(/^\| `(\w+:\w+)` +\|/gm);
    expect([...rows].map(([, scope]) => scope)).toEqual(ADMIN_SCOPES);
  });

  it('requires more than a read scope when it changes something, except for minting a session', () => {
    const open = routes
      .filter(({ method }) => method !== 'GET')
      .filter(({ scopes }) => (scopes as readonly AdminScope[]).some((scope) => scope.endsWith(':read')))
      .map(({ name }) => name);
    expect(open).toEqual(['POST partners/:pid/portal-sessions']);
  });

  it('returns 403 without its scope, names the scope, and changes nothing', async () => {
    const before = await state();
    for (const route of routes) {
      const others = ADMIN_SCOPES.filter((scope) => !route.scopes!.includes(scope));
      const refused = await Promise.all(
        [NOTHING, ...others.map((scope) => tokens.get(scope)!)].map((token) => call(token, route)),
      );
      for (const { status, body } of refused) {
        expect([route.name, status, body.code]).toEqual([route.name, 403, 'forbidden']);
        for (const scope of route.scopes!) expect(body.detail).toContain(scope);
      }
    }
    expect(await state()).toEqual(before);
  });

  it('accepts a token that holds only its scope, and a token that ADMIN_TOKEN_SCOPES does not list', async () => {
    for (const route of routes) {
      for (const scope of route.scopes as readonly AdminScope[]) {
        const { status, body } = await call(tokens.get(scope)!, route);
        expect([route.name, scope, status, [200, 201, 202, 404, 409].includes(status), body.code]).toEqual([
          route.name,
          scope,
          status,
          true,
          status < 400 ? undefined : (body.code as string),
        ]);
      }
      expect([route.name, (await call(ADMIN_TOKEN, route)).status]).not.toEqual([route.name, 403]);
    }
  });

  it('gives a portal session no more scopes than the token holds', async () => {
    const path = `/internal/v1/partners/${known['partners']}/portal-sessions`;
    const mint = (token: string, scopes?: string[]): Promise<ApiAnswer> =>
      new HttpClient(service.process.admin!.url, token).post(path, { actor: { id: 'user-2' }, scopes });
    const narrow = tokens.get('orders:read')!;
    expect((await mint(narrow, ['orders:read'])).status).toBe(201);
    expect((await mint(narrow, ['keys:write'])).body.code).toBe('forbidden');
    expect((await mint(tokens.get('money:write')!)).body.code).toBe('forbidden');
    const { id } = (await mint(narrow)).body.data;
    const { rows } = await service.database.pool.query('SELECT scopes FROM portal_sessions WHERE id = $1', [
      id,
    ]);
    expect(rows).toEqual([{ scopes: ['orders:read'] }]);
  });
});

it.each([
  ['admin', AdminTokenGuard],
  ['partner', BearerKeyGuard],
])('refuses to boot when a route of the %s API has no scope', async (_, guard) => {
  @UseGuards(guard)
  @Controller('internal/v1/forgotten')
  class ForgottenController {
    @Get()
    list(): void {}
  }
  @Module({ imports: [DiscoveryModule], controllers: [ForgottenController] })
  class ForgottenModule {}
  const app = await NestFactory.createApplicationContext(ForgottenModule, { logger: false });
  try {
    const check = (): void => assertEveryRouteNeedsAScope(app.get(DiscoveryService), guard);
    expect(check).toThrow('routes without a scope: ForgottenController.list (/)');
  } finally {
    await app.close();
  }
});
