import { randomUUID } from 'node:crypto';
import { newId } from '../../../src/common/ids.js';
import type { Port } from '../../../src/infra/http/openapi/document/operation.js';
import {
  ADMIN_TOKEN,
  type ApiAnswer,
  eventually,
  type HttpClient,
  loggedCall,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../../harness/index.js';
import type { ReadOperation } from '../reader.js';

/** The portal uses a cookie, and test/portal covers its routes. */
export type FuzzedPort = Exclude<Port, 'portal'>;

export function fuzzedPort({ port }: ReadOperation): FuzzedPort {
  if (port === 'portal') throw new Error('the portal is not fuzzed here');
  return port;
}

/** Existing ids by the path segment before them. Later ones are for operations that end them. */
type RealIds = Readonly<Record<string, readonly string[]>>;

/** A running service with objects of every kind. */
export interface World {
  readonly service: TestService;
  readonly tokens: Readonly<Record<FuzzedPort, string>>;
  readonly ports: Readonly<Record<FuzzedPort, number>>;
  realIds(operation: ReadOperation, parameter: string): readonly string[];
  /**
   * Well-formed ids that do not exist or belong to another partner, which the caller must not be able to distinguish
   * (D14).
   */
  foreignIds(operation: ReadOperation, parameter: string): readonly string[];
  /** Counts the rows of tables that only API calls write to. */
  countRows(): Promise<unknown>;
  stop(): Promise<void>;
}

const PREFIXES: Readonly<Record<string, Parameters<typeof newId>[0]>> = {
  'api-keys': 'key',
  deliveries: 'dlv',
  esims: 'esim',
  events: 'evt',
  orders: 'ord',
  partners: 'ptn',
  'portal-sessions': 'ps',
  replays: 'rpl',
  requests: 'req',
  topups: 'top',
  'refund-requests': 'rfr',
  'install-links': 'ilk',
  'webhook-endpoints': 'whe',
};

/** @param env settings in addition to those of every test */
export async function createWorld(env: Record<string, string> = {}): Promise<World> {
  const service = await startTestService({ env });
  const receiver = await startReceiver();
  const caller = await service.createPartner('Caller');
  const victim = await service.createPartner('Victim');
  const [partner, admin, foreign] = await Promise.all([
    partnerIds(caller),
    adminIds(service, victim, receiver),
    partnerIds(await service.createPartner('Stranger')),
  ]);
  const ids: Record<FuzzedPort, RealIds> = { partner, admin };
  const portOf = (url: string): number => Number(new URL(url).port);
  return {
    service,
    tokens: { partner: caller.sandboxKey, admin: ADMIN_TOKEN },
    ports: { partner: portOf(service.process.api!.url), admin: portOf(service.process.admin!.url) },
    realIds: (operation, parameter) => ids[fuzzedPort(operation)][segmentBefore(operation, parameter)] ?? [],
    foreignIds: (operation, parameter) => {
      const segment = segmentBefore(operation, parameter);
      const prefix = PREFIXES[segment];
      const unknown = prefix ? newId(prefix) : 'pkg_no_such';
      if (operation.port === 'partner')
        return [unknown, ...(segment === 'catalog' ? [] : (foreign[segment] ?? []))];
      // The other partner exists, but owns none of the victim's objects.
      const isBelow = segment === 'partners' && operation.path.split('{').length > 2;
      return isBelow ? [unknown, caller.id] : [unknown];
    },
    countRows: async () => (await service.database.pool.query(COUNT_ROWS)).rows[0] as unknown,
    stop: async () => {
      await service.stop();
      await receiver.close();
    },
  };
}

const TABLES = [
  'orders',
  'partners',
  'api_keys',
  'webhook_endpoints',
  'idempotency_keys',
  'audit_log',
  'topups',
  'refund_requests',
  'install_links',
  'ledger_transactions',
];
const COUNT_ROWS = `SELECT ${TABLES.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`).join(', ')}`;

function segmentBefore({ path }: ReadOperation, parameter: string): string {
  const segments = path.split('/');
  return segments[segments.indexOf(`{${parameter}}`) - 1] ?? '';
}

async function partnerIds({ sandbox }: TestPartner): Promise<RealIds> {
  const first = await issuedOrder(sandbox, 2);
  const second = await issuedOrder(sandbox, 1);
  // One to resume, to suspend and to revoke, and an order whose only eSIM is replaced.
  const controlled = await issuedOrder(sandbox, 3);
  const replaced = await issuedOrder(sandbox, 1);
  await suspend(sandbox, controlled.esims[0]!);
  const esims = [...first.esims, ...second.esims, ...controlled.esims, ...replaced.esims];
  for (const id of [...first.esims, ...second.esims]) await setAutoTopup(sandbox, id);
  const events = (await expectOk(sandbox.get('/v1/events'))).body.data as { id: string }[];
  return {
    catalog: ['pkg_fr_1gb_7d'],
    orders: [first.id, second.id],
    topups: [await topUp(sandbox, first.esims[0]!)],
    'refund-requests': [await requestRefund(sandbox, first.esims[1]!)],
    // One for each of the first eSIMs.
    'install-links': [
      await createInstallLink(sandbox, first.esims[0]!),
      await createInstallLink(sandbox, first.esims[1]!),
    ],
    esims,
    events: events.map(({ id }) => id),
  };
}

async function adminIds(service: TestService, victim: TestPartner, receiver: TestReceiver): Promise<RealIds> {
  const { admin } = service;
  const base = `/internal/v1/partners/${victim.id}`;
  const endpoints: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { body } = await expectOk(
      admin.post(`${base}/webhook-endpoints`, { mode: 'sandbox', url: receiver.url }),
    );
    endpoints.push(body.data.id as string);
  }
  await service.createKey(victim.id, 'sandbox');
  const { esims } = await issuedOrder(victim.sandbox, 2);
  const call = await expectOk(victim.sandbox.get('/v1/me'));
  const requestId = (await loggedCall(admin, call))['request_id'] as string;
  await service.database.pool.query(
    `INSERT INTO packages SELECT (jsonb_populate_record(p, '{"mode": "live"}')).* FROM packages p
     WHERE p.mode = 'sandbox' AND p.id = 'pkg_fr_1gb_7d'`,
  );
  const listed = async (path: string): Promise<string[]> =>
    ((await expectOk(admin.get(path))).body.data as { id: string }[]).map(({ id }) => id);
  return {
    partners: [victim.id],
    packages: ['pkg_fr_1gb_7d'],
    'api-keys': await listed(`${base}/api-keys`),
    'webhook-endpoints': endpoints,
    deliveries: await eventually('a delivery is made', async () => {
      const deliveries = await listed(`${base}/webhook-endpoints/${endpoints[0]}/deliveries`);
      return deliveries.length > 0 && deliveries;
    }),
    'portal-sessions': await openSessions(admin, base),
    replays: await startReplays(admin, base, receiver),
    requests: [requestId],
    'refund-requests': [
      await requestRefund(victim.sandbox, esims[0]!),
      await requestRefund(victim.sandbox, esims[1]!),
    ],
    esims,
    topups: [await openTopup(service, await topUp(victim.sandbox, esims[0]!))],
    // An order whose provider has not responded yet.
    orders: [await slowOrder(service, victim.sandbox)],
  };
}

async function openSessions(admin: HttpClient, base: string): Promise<string[]> {
  const answer = await expectOk(admin.post(`${base}/portal-sessions`, { actor: { id: 'usr_1' } }));
  return [answer.body.data.id as string];
}

async function suspend(api: HttpClient, esimId: string): Promise<void> {
  await expectOk(api.post(`/v1/esims/${esimId}/suspend`, {}));
  await eventually('the eSIM is suspended', async () => {
    const { data } = (await api.get('/v1/esims?status=suspended')).body;
    return (data as { id: string }[]).some(({ id }) => id === esimId);
  });
}

async function topUp(api: HttpClient, esimId: string): Promise<string> {
  const packages = await expectOk(api.get(`/v1/esims/${esimId}/topup-packages`));
  const body = { esim_id: esimId, package_id: packages.body.data[0].id as string };
  return (await expectOk(api.post('/v1/topups', body))).body.data.id as string;
}

async function requestRefund(api: HttpClient, esimId: string): Promise<string> {
  const body = { esim_id: esimId, reason: 'other' };
  return (await expectOk(api.post('/v1/refund-requests', body))).body.data.id as string;
}

async function createInstallLink(api: HttpClient, esimId: string): Promise<string> {
  return (await expectOk(api.post(`/v1/esims/${esimId}/install-links`))).body.data.id as string;
}

async function setAutoTopup(api: HttpClient, esimId: string): Promise<void> {
  const [item] = (await expectOk(api.get(`/v1/esims/${esimId}/topup-packages`))).body.data;
  const body = {
    at_percent: 100,
    package_id: item.id as string,
    max_times: 1,
    max_price: item.price as object,
  };
  await expectOk(api.call('PUT', `/v1/esims/${esimId}/auto-topup`, { body }));
}

/** A copied top-up that no worker processes, because every Sandbox top-up ends at once. */
async function openTopup({ database }: TestService, topupId: string): Promise<string> {
  const id = newId('top');
  const open = { status: 'processing', completed_at: null, next_attempt_at: null, lease_until: null };
  await database.pool.query(
    `INSERT INTO topups SELECT (jsonb_populate_record(t, $2)).* FROM topups t WHERE id = $1`,
    [topupId, JSON.stringify({ ...open, id, provider_reference: randomUUID(), upstream_placed_at: null })],
  );
  return id;
}

async function slowOrder({ database }: TestService, api: HttpClient): Promise<string> {
  const { id } = (await expectOk(api.post('/v1/orders', { package_id: 'pkg_test_slow' }))).body.data as {
    id: string;
  };
  await eventually('the slow order is under way', async () => {
    return (await api.get(`/v1/orders/${id}`)).body.data.status === 'processing';
  });
  // On a busy machine, the order's 20 s may be over before this line runs, so retry.
  await eventually('its upstream takes an hour', async () => {
    const { rowCount } = await database.pool.query(
      `UPDATE sandbox_upstream_orders u SET ready_at = ready_at + interval '1 hour'
       FROM orders o WHERE o.provider_reference = u.reference AND o.id = $1`,
      [id],
    );
    return rowCount === 1;
  });
  return id;
}

/** Replays of a disabled endpoint wait, so they keep running as long as they are needed. */
async function startReplays(admin: HttpClient, base: string, receiver: TestReceiver): Promise<string[]> {
  const made = await expectOk(
    admin.post(`${base}/webhook-endpoints`, { mode: 'sandbox', url: receiver.url }),
  );
  const endpoint = `${base}/webhook-endpoints/${made.body.data.id as string}`;
  await expectOk(admin.post(`${endpoint}/disable`));
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) {
    const started = await expectOk(admin.post(`${endpoint}/replay`, { since: '2026-01-01T00:00:00Z' }));
    ids.push(started.body.data.id as string);
  }
  return ids;
}

async function issuedOrder(api: HttpClient, quantity: number): Promise<{ id: string; esims: string[] }> {
  const placed = await expectOk(
    api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity, reference: randomUUID() }),
  );
  const id = placed.body.data.id as string;
  return eventually('the order is issued', async () => {
    const { data } = (await api.get(`/v1/orders/${id}`)).body;
    return (
      data.status === 'issued' && { id, esims: data.esims.map((esim: { esim_id: string }) => esim.esim_id) }
    );
  });
}

async function expectOk(call: Promise<ApiAnswer>): Promise<ApiAnswer> {
  const answer = await call;
  if (answer.status >= 300) throw new Error(`the world cannot be made: ${answer.status} ${answer.text}`);
  return answer;
}
