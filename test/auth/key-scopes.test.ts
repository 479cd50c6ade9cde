import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiModule } from '../../src/apps/api.app.js';
import { previewProcess } from '../../src/apps/openapi.js';
import { type IdPrefix, newId } from '../../src/common/ids.js';
import { KEY_SCOPES, type KeyScope } from '../../src/common/scopes.js';
import {
  type ApiAnswer,
  eventually,
  type HttpClient,
  startTestService,
  type TestService,
} from '../harness/index.js';
import { type KnownRoute, knownRoutes, withIds } from '../harness/known-routes.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { BASE, TOPUP_1GB_7D } from '../topups/topup-steps.js';

/** A valid body for each write, so that only the scope can be missing. */
const BODIES: Readonly<Record<string, (esimId: string) => object>> = {
  'POST orders': () => ({ package_id: BASE }),
  'POST orders/:id/cancel': () => ({}),
  'PUT esims/:id/auto-topup': () => ({
    at_percent: 80,
    package_id: TOPUP_1GB_7D,
    max_times: 1,
    max_price: { amount: 10_000, currency: 'USD' },
  }),
  'DELETE esims/:id/auto-topup': () => ({}),
  'PATCH esims/:id': () => ({ label: 'mine' }),
  'POST esims/:id/install-links': () => ({}),
  'DELETE esims/:id/install-links/:lid': () => ({}),
  'POST esims/:id/suspend': () => ({}),
  'POST esims/:id/resume': () => ({}),
  'POST esims/:id/revoke': () => ({}),
  'POST esims/:id/replace': () => ({}),
  'POST topups': (esim_id) => ({ esim_id, package_id: TOPUP_1GB_7D }),
  'POST refund-requests': (esim_id) => ({ esim_id, reason: 'other' }),
  'POST refund-requests/:id/cancel': () => ({}),
  'POST sandbox/esims/:id/activate': () => ({}),
  'POST sandbox/esims/:id/consume': () => ({ percent: 1 }),
  'POST sandbox/esims/:id/expire': () => ({}),
};
const PREFIXES: Readonly<Record<string, IdPrefix>> = {
  orders: 'ord',
  topups: 'top',
  events: 'evt',
  'refund-requests': 'rfr',
  'install-links': 'ilk',
};
/** These end the eSIM or depend on its status. They get an unknown one, and so 404 instead of 403. */
const ENDING = /^POST esims\/:id\/(suspend|resume|revoke|replace)$/;

let service: TestService;
let partnerId: string;
let routes: readonly KnownRoute[];
/** A key with only this scope, and one with all others. */
const only = new Map<KeyScope, HttpClient>();
const without = new Map<KeyScope, HttpClient>();
let full: HttpClient;
let esimId: string;

beforeAll(async () => {
  service = await startTestService();
  const partner = await service.createPartner();
  ({ id: partnerId, sandbox: full } = partner);
  routes = await knownRoutes(ApiModule.of(previewProcess()), '/v1/');
  // A partner has at most ten keys per mode. The last scope's keys therefore belong to a third partner.
  const [other, third] = [await service.createPartner(), await service.createPartner()];
  for (const [nth, scope] of KEY_SCOPES.entries()) {
    const [own, foreign] = nth < 9 ? [partnerId, other.id] : [third.id, third.id];
    only.set(scope, service.partnerApi((await createKey({ scopes: [scope] }, own))['key'] as string));
    const rest = KEY_SCOPES.filter((each) => each !== scope);
    without.set(scope, service.partnerApi((await createKey({ scopes: rest }, foreign))['key'] as string));
  }
  esimId = await issueEsim(full, BASE);
});
afterAll(() => service.stop());

const keysOf = (owner: string): string => `/internal/v1/partners/${owner}/api-keys`;

async function createKey(terms: object, owner = partnerId): Promise<Json> {
  const answer = await service.admin.post(keysOf(owner), { mode: 'sandbox', ...terms });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data as Json;
}

function call(api: HttpClient, { method, path, name }: KnownRoute): Promise<ApiAnswer> {
  const esims = ENDING.test(name) ? newId('esim') : esimId;
  const filled = withIds(path, { esims, catalog: BASE }, PREFIXES);
  const body = BODIES[name]?.(esimId);
  return api.call(method, `/v1/${filled}`, body === undefined ? {} : { body });
}

const needed = ({ scopes }: KnownRoute): readonly KeyScope[] =>
  scopes === null || scopes === 'any' ? [] : (scopes as readonly KeyScope[]);

describe('every route of the partner API', () => {
  it('declares one scope, which the security page documents and these tests cover', () => {
    expect(routes.length).toBeGreaterThan(20);
    const open = routes.filter(({ scopes }) => scopes === 'any').map(({ name }) => name);
    expect(open.toSorted()).toEqual(['GET me', 'GET requests']);
    for (const route of routes)
      if (route.scopes !== 'any') expect([route.name, needed(route).length]).toEqual([route.name, 1]);
    const used = new Set(routes.flatMap(needed));
    expect(used).toEqual(new Set(KEY_SCOPES));
    const posts = routes.filter(({ method }) => method !== 'GET').map(({ name }) => name);
    expect(posts.toSorted()).toEqual(Object.keys(BODIES).toSorted());
  });

  it('is listed with its scope in the guide', () => {
    const guide = readFileSync('docs/guides/api-keys.md', 'utf8');
    const documented = [...guide.matchAll(/^\| `(\w+:\w+)` +\|(.*)\|$/gm)].map(
      ([, scope, cell]) =>
        [scope, [...cell!.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, name]) => name).toSorted()] as const,
    );
    const expected = KEY_SCOPES.map((scope) => {
      const own = routes.filter((route) => needed(route).includes(scope));
      return [
        scope,
        own.map(({ method, path }) => `${method} /v1/${path.replace(/:(\w+)/g, '{$1}')}`).toSorted(),
      ];
    });
    expect(documented).toEqual(expected);
  });

  it('requires a write scope when it changes something, except for links, which only show install data', () => {
    for (const { name, method, scopes } of routes) {
      if (name.includes('install-links')) expect([name, String(scopes)]).toEqual([name, 'install:read']);
      else if (method !== 'GET')
        expect([name, String(scopes)]).toEqual([name, expect.stringMatching(/:write$/)]);
    }
  });

  it('returns 403 without its scope, names the scope, and changes nothing', async () => {
    const state = async (): Promise<unknown> =>
      (
        await service.database.pool.query(
          `SELECT (SELECT count(*) FROM orders) AS orders, (SELECT count(*) FROM topups) AS topups,
                  (SELECT count(*) FROM refund_requests) AS refunds, (SELECT count(*) FROM install_links) AS links,
                  (SELECT json_agg(e.version ORDER BY e.id) FROM esims e) AS esims,
                  (SELECT count(*) FROM idempotency_keys) AS keys`,
        )
      ).rows[0];
    const before = await state();
    for (const route of routes) {
      for (const scope of needed(route)) {
        const others = [...only].filter(([each]) => each !== scope).map(([, api]) => api);
        const answers = await Promise.all([without.get(scope)!, ...others].map((api) => call(api, route)));
        for (const { status, body } of answers) {
          expect([route.name, status, body.code]).toEqual([route.name, 403, 'forbidden']);
          expect(body.detail).toContain(`(${scope})`);
        }
      }
    }
    expect(await state()).toEqual(before);
  });

  it('accepts a key with only its scope, and a key without scopes', async () => {
    // The eSIM that `expire` ends must not be needed by a later route.
    for (const route of routes.toSorted(
      (a, b) => Number(a.name.includes('expire')) - Number(b.name.includes('expire')),
    )) {
      const keys =
        route.scopes === 'any' ? [...only.values()] : needed(route).map((scope) => only.get(scope)!);
      for (const api of [...keys, full]) {
        const { status, text } = await call(api, route);
        expect([route.name, [200, 201, 202, 404].includes(status), text]).toEqual([route.name, true, text]);
      }
    }
  });
});

describe('a key with scopes', () => {
  it('shows them, keeps them over a rotation, and stops with its revocation', async () => {
    const owner = (await service.createPartner()).id;
    const scopes = ['catalog:read', 'events:read'];
    const key = await createKey({ scopes }, owner);
    const scopesOf = async (secret: unknown): Promise<unknown> =>
      (await service.partnerApi(secret as string).get('/v1/me')).body.data.scopes;
    expect([key['scopes'], await scopesOf(key['key'])]).toEqual([scopes, scopes]);
    const rotated = await service.admin.post(`${keysOf(owner)}/${key['id']}/rotate`);
    const { id, key: secret } = rotated.body.data as Json;
    expect([rotated.body.data.scopes, await scopesOf(secret)]).toEqual([scopes, scopes]);
    const successor = service.partnerApi(secret as string);
    expect((await successor.get('/v1/balance')).status).toBe(403);
    const listed = (await service.admin.get(keysOf(owner))).body.data as Json[];
    expect(listed.map((each) => each['scopes'])).toEqual([scopes, scopes, null]);
    await service.admin.post(`${keysOf(owner)}/${id}/revoke`);
    expect((await successor.get('/v1/catalog')).status).toBe(401);
    const { data } = (await service.admin.get(`/internal/v1/audit-log?subject_id=${key['id']}`)).body;
    expect((data as Json[]).at(-1)!['details']).toMatchObject({ scopes, spend_limit_amount: null });
  });

  it('needs the scope for a replay as well', async () => {
    const idempotencyKey = randomUUID();
    const place = (api: HttpClient): Promise<ApiAnswer> =>
      api.post('/v1/orders', { package_id: BASE }, { idempotencyKey });
    const accepted = await place(full);
    expect(accepted.status).toBe(202);
    const refused = await place(only.get('orders:read')!);
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
    const replayed = await place(only.get('orders:write')!);
    expect([replayed.status, replayed.text]).toEqual([202, accepted.text]);
  });

  it('leaves the Idempotency-Key free when the scope is missing', async () => {
    const idempotencyKey = randomUUID();
    const body = { package_id: BASE };
    expect((await only.get('catalog:read')!.post('/v1/orders', body, { idempotencyKey })).status).toBe(403);
    const other = await full.post('/v1/orders', { ...body, quantity: 2 }, { idempotencyKey });
    expect([other.status, other.headers.get('idempotent-replayed')]).toEqual([202, null]);
  });

  it('lists only its own calls', async () => {
    const owner = await service.createPartner();
    const key = await createKey({ scopes: ['catalog:read'] }, owner.id);
    const api = service.partnerApi(key['key'] as string);
    const { key_id: otherId } = (await owner.sandbox.get('/v1/me')).body.data;
    await api.get('/v1/catalog');
    const calls = async (client: HttpClient): Promise<string[]> =>
      ((await client.get('/v1/requests')).body.data as Json[]).map((each) => each['key_id'] as string);
    await eventually('both calls are logged', async () => new Set(await calls(owner.sandbox)).size === 2);
    expect(await calls(api)).toEqual([key['id']]);
    expect((await api.get(`/v1/requests?key_id=${key['id']}`)).status).toBe(200);
    const refused = await api.get(`/v1/requests?key_id=${otherId}`);
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
  });
});

describe('creating a key', () => {
  it.each([
    ['no scope', { scopes: [] }, '/scopes'],
    ['an unknown scope', { scopes: ['catalog:write'] }, '/scopes'],
    ['a scope of the portal', { scopes: ['keys:write'] }, '/scopes'],
    ['a scope twice', { scopes: ['catalog:read', 'catalog:read'] }, '/scopes'],
    ['text for scopes', { scopes: 'catalog:read' }, '/scopes'],
    ['a number as scope', { scopes: [1] }, '/scopes'],
    ['a limit without an amount', { spend_limit: { per: 'day' } }, '/spend_limit/amount'],
    [
      'a limit per month',
      { spend_limit: { amount: { amount: 1, currency: 'USD' }, per: 'month' } },
      '/spend_limit/per',
    ],
    ['a limit per nothing', { spend_limit: { amount: { amount: 1, currency: 'USD' } } }, '/spend_limit/per'],
    [
      'a negative limit',
      { spend_limit: { amount: { amount: -1, currency: 'USD' }, per: 'day' } },
      '/spend_limit/amount/amount',
    ],
    [
      'a fraction of a cent',
      { spend_limit: { amount: { amount: 0.5, currency: 'USD' }, per: 'day' } },
      '/spend_limit/amount/amount',
    ],
    [
      'an unknown currency code',
      { spend_limit: { amount: { amount: 1, currency: 'usd' }, per: 'day' } },
      '/spend_limit/amount/currency',
    ],
    ['a number as limit', { spend_limit: 100 }, '/spend_limit'],
  ])('refuses %s', async (_, terms, pointer) => {
    const answer = await service.admin.post(keysOf(partnerId), { mode: 'sandbox', ...terms });
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
    expect((answer.body.errors as Json[]).map((each) => each['pointer'])).toContain(pointer);
  });
});
