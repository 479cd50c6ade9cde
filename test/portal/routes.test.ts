import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PORTAL_SCOPES } from '../../src/common/scopes.js';
import { type IdPrefix, newId } from '../../src/common/ids.js';
import {
  eventually,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { openPortal, PortalBrowser } from '../harness/portal.js';
import { callRoute, type PortalRoute, portalRoutes } from './portal-routes.js';

const PREFIXES: Readonly<Record<string, IdPrefix>> = {
  'api-keys': 'key',
  'webhook-endpoints': 'whe',
  deliveries: 'dlv',
  replays: 'rpl',
  requests: 'req',
  orders: 'ord',
  esims: 'esim',
  topups: 'top',
  'refund-requests': 'rfr',
  events: 'evt',
};

let service: TestService;
let receiver: TestReceiver;
let routes: readonly PortalRoute[];
let caller: TestPartner;
let stranger: TestPartner;
/** Ids of the stranger's objects, one per noun. */
let foreign: Readonly<Record<string, string>>;
/** Ids of the caller's own live objects. */
let live: Readonly<Record<string, string>>;

beforeAll(async () => {
  routes = await portalRoutes();
  service = await startTestService();
  receiver = await startReceiver();
  caller = await service.createPartner('Caller');
  stranger = await service.createPartner('Stranger');
  foreign = await oneOfEach(stranger);
  const base = `/internal/v1/partners/${caller.id}`;
  live = {
    'api-keys': await madeId(`${base}/api-keys`, { mode: 'live' }),
    'webhook-endpoints': await madeId(`${base}/webhook-endpoints`, { mode: 'live', url: receiver.url }),
  };
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function madeId(path: string, body: unknown): Promise<string> {
  const made = await service.admin.post(path, body);
  if (made.status >= 300) throw new Error(`${path}: ${made.text}`);
  return made.body.data.id as string;
}

async function oneOfEach(partner: TestPartner): Promise<Readonly<Record<string, string>>> {
  const base = `/internal/v1/partners/${partner.id}`;
  const endpoint = await madeId(`${base}/webhook-endpoints`, { mode: 'sandbox', url: receiver.url });
  const key = await madeId(`${base}/api-keys`, { mode: 'sandbox' });
  const order = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
  await eventually('the event is delivered', () =>
    receiver.received.some((hook: ReceivedWebhook) => hook.body.includes(order.body.data.id as string)),
  );
  const first = async (path: string): Promise<string> => {
    let id: string | undefined;
    await eventually(`something in ${path}`, async () => {
      const { body } = await service.admin.get(`${base}/${path}`);
      id = (body.data as { id?: string; request_id?: string }[])[0]?.id ?? body.data[0]?.request_id;
      return id !== undefined;
    });
    return id!;
  };
  const esim = await first('esims');
  const topup = await partner.sandbox.post('/v1/topups', {
    esim_id: esim,
    package_id: 'pkg_test_topup_fail',
  });
  await eventually('the failed top-up is told', () =>
    receiver.received.some(({ body }) => body.includes(topup.body.data.id as string)),
  );
  const rule = { at_percent: 80, package_id: 'pkg_fr_topup_1gb_7d', max_times: 1 };
  const maxPrice = { amount: 100_000, currency: 'USD' };
  await partner.sandbox.call('PUT', `/v1/esims/${esim}/auto-topup`, {
    body: { ...rule, max_price: maxPrice },
  });
  const refund = await partner.sandbox.post('/v1/refund-requests', { esim_id: esim, reason: 'other' });
  return {
    'api-keys': key,
    'webhook-endpoints': endpoint,
    deliveries: await first(`webhook-endpoints/${endpoint}/deliveries`),
    replays: await madeId(`${base}/webhook-endpoints/${endpoint}/replay`, {
      since: '2026-01-01T00:00:00.000Z',
    }),
    requests: await first('requests'),
    orders: order.body.data.id as string,
    esims: esim,
    topups: topup.body.data.id as string,
    'refund-requests': refund.body.data.id as string,
    events: await first('events'),
  };
}

const open = (partner: TestPartner, terms = {}): Promise<PortalBrowser> =>
  openPortal(service.admin, service.process.portal!.url, partner.id, terms);
const withId = (): readonly PortalRoute[] => routes.filter(({ noun }) => noun !== null);

describe('every route of the portal', () => {
  it('is covered by these tests', () => {
    expect(routes.length).toBeGreaterThan(35);
    expect(withId().filter(({ noun }) => PREFIXES[noun!] === undefined)).toEqual([]);
    expect(routes.filter(({ scopes, path }) => scopes === null && path !== 'session')).toEqual([]);
  });

  it('returns 401 without a session', async () => {
    const nobody = new PortalBrowser(service.process.portal!.url, '');
    for (const route of routes.filter(({ name }) => name !== 'POST session')) {
      const answer = await callRoute(nobody, route, route.noun && newId(PREFIXES[route.noun]!));
      expect([route.name, answer.status, answer.body.code]).toEqual([route.name, 401, 'unauthorized']);
    }
  });

  it("returns the same 404 for another partner's id, and changes nothing", async () => {
    const browser = await open(caller);
    const before = await rowsOf(stranger);
    for (const route of withId()) {
      const answers = [foreign[route.noun!]!, newId(PREFIXES[route.noun!]!), 'x'].map((id) =>
        callRoute(browser, route, id),
      );
      for (const answer of await Promise.all(answers)) {
        expect([route.name, answer.status, answer.body.code]).toEqual([route.name, 404, 'not_found']);
      }
    }
    expect(await rowsOf(stranger)).toEqual(before);
    // Their owner can read each of them.
    const own = await open(stranger);
    for (const route of withId().filter(({ method }) => method === 'GET')) {
      const answer = await callRoute(own, route, foreign[route.noun!]!);
      expect([route.name, answer.status]).toEqual([route.name, 200]);
    }
  });

  it("returns the same 404 for objects of a mode that the session does not allow, and 403 for that mode's lists", async () => {
    const browser = await open(caller, { modes: ['sandbox'] });
    for (const route of withId().filter(({ noun }) => live[noun!] !== undefined)) {
      const answer = await callRoute(browser, route, live[route.noun!]!);
      expect([route.name, answer.status]).toEqual([route.name, 404]);
    }
    const lists = [
      'api-keys',
      'webhook-endpoints',
      'requests',
      'orders',
      'esims',
      'topups',
      'refund-requests',
      'events',
      'catalog',
      'destinations',
    ];
    for (const list of lists) {
      expect([list, (await browser.get(`${list}?mode=live`)).status]).toEqual([list, 403]);
      const allowed = await browser.get(`${list}?mode=sandbox`);
      expect([list, allowed.status]).toEqual([list, 200]);
      const unnamed = await browser.get(list);
      expect([list, unnamed.body.data]).toEqual([list, allowed.body.data]);
    }
    for (const path of ['wallet', 'wallet/transactions']) expect((await browser.get(path)).status).toBe(403);
    const body = { mode: 'live', url: 'https://partner.example/hook' };
    expect((await browser.post('webhook-endpoints', body)).status).toBe(403);
    expect((await browser.post('api-keys', { mode: 'live' })).status).toBe(403);
  });

  it.each(PORTAL_SCOPES)('is open to %s exactly where required', async (scope) => {
    const browser = await open(caller, { scopes: [scope] });
    for (const route of routes.filter(({ path }) => path !== 'session')) {
      const answer = await callRoute(browser, route, route.noun && newId(PREFIXES[route.noun]!));
      expect([route.name, answer.status === 403]).toEqual([
        route.name,
        route.scopes !== 'any' && !route.scopes!.includes(scope),
      ]);
    }
  });
});

async function rowsOf({ id }: TestPartner): Promise<unknown> {
  const { rows } = await service.database.pool.query(
    `SELECT (SELECT count(*) FROM api_keys WHERE partner_id = $1 AND revoked_at IS NULL) AS keys,
            (SELECT json_agg(json_build_array(w.enabled, w.secret, w.url, w.deleted_at, w.description) ORDER BY w.id)
             FROM webhook_endpoints w WHERE w.partner_id = $1) AS endpoints,
            (SELECT json_agg(json_build_array(e.label, e.pending_action) ORDER BY e.id)
             FROM esims e WHERE e.partner_id = $1) AS esims,
            (SELECT json_agg(r.status ORDER BY r.id) FROM refund_requests r WHERE r.partner_id = $1) AS refunds,
            (SELECT count(*) FROM webhook_deliveries WHERE partner_id = $1 AND kind <> 'replay') AS deliveries,
            (SELECT count(*) FROM webhook_backlog_jobs WHERE partner_id = $1 AND status = 'canceled') AS canceled`,
    [id],
  );
  return rows[0];
}
