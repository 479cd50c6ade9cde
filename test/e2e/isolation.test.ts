import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { expectProblem, withoutRequestId } from '../harness/expect-problem.js';
import { addLivePackage, copyToLive, copyTopupToLive, type OrderRows, rowsOf } from '../harness/live-rows.js';
import { type Json, orderEnded, placeOrder, readFeed } from '../harness/order-steps.js';

/** Rows of an order and of a top-up for its eSIM. */
interface Rows extends OrderRows {
  readonly topupId: string;
}

const TOPUP_PACKAGE = 'pkg_fr_topup_7d';

let service: TestService;
let a: TestPartner;
let b: TestPartner;
/** A client with A's live key. */
let aLive: HttpClient;
/** A's newest sandbox order and its copy in live. */
let sandboxRows: Rows;
let liveRows: Rows;

beforeAll(async () => {
  // With a short lease, a stalled worker would lose it and its webhook would be sent again.
  service = await startTestService({ env: { LEASE_MS: '60000' } });
  [a, b] = await Promise.all([service.createPartner('A'), service.createPartner('B')]);
  aLive = service.partnerApi(await service.createKey(a.id, 'live'));
  for (const reference of ['a-1', 'a-2', 'a-3']) {
    const { id } = await placeOrder(a.sandbox, { package_id: 'pkg_fr_1gb_7d', reference });
    await orderEnded(a.sandbox, id as string);
    const order = await rowsOf(service.database, id as string);
    const topupId = await toppedUp(order.esimId, reference);
    sandboxRows = { ...order, topupId };
    const copy = await copyToLive(service.database, order);
    liveRows = { ...copy, topupId: await copyTopupToLive(service.database, topupId, copy) };
  }
  await addLivePackage(service.database, 'pkg_live_only');
});

afterAll(() => service.stop());

async function toppedUp(esimId: string, reference: string): Promise<string> {
  const request = { esim_id: esimId, package_id: TOPUP_PACKAGE, reference };
  const { id } = (await a.sandbox.post('/v1/topups', request)).body.data as Json;
  await eventually(`top-up ${id as string} ends`, async () => {
    return (await a.sandbox.get(`/v1/topups/${id as string}`)).body.data.status === 'completed';
  });
  return id as string;
}

interface Stranger {
  readonly name: string;
  readonly api: () => HttpClient;
  readonly target: () => Rows;
}

const STRANGERS: Stranger[] = [
  { name: "A's sandbox key at A's live rows", api: () => a.sandbox, target: () => liveRows },
  { name: "A's live key at A's sandbox rows", api: () => aLive, target: () => sandboxRows },
  { name: "B's key at A's sandbox rows", api: () => b.sandbox, target: () => sandboxRows },
  { name: "B's key at A's live rows", api: () => b.sandbox, target: () => liveRows },
];

type Operation = readonly ['GET' | 'POST', (rows: Rows) => string, body?: object];

const ORDER_PATHS: Operation[] = [
  ['GET', ({ orderId }) => `/v1/orders/${orderId}`],
  ['POST', ({ orderId }) => `/v1/orders/${orderId}/cancel`],
];
const ESIM_PATHS: Operation[] = [
  ['GET', ({ esimId }) => `/v1/esims/${esimId}`],
  ['GET', ({ esimId }) => `/v1/esims/${esimId}/qr`],
  ['GET', ({ esimId }) => `/v1/esims/${esimId}/usage`],
  ['GET', ({ esimId }) => `/v1/esims/${esimId}/topup-packages`],
];
const SANDBOX_PATHS: Operation[] = [
  ['POST', ({ esimId }) => `/v1/sandbox/esims/${esimId}/activate`],
  ['POST', ({ esimId }) => `/v1/sandbox/esims/${esimId}/consume`, { bytes: 1 }],
  ['POST', ({ esimId }) => `/v1/sandbox/esims/${esimId}/expire`],
];
const TOPUP_PATHS: Operation[] = [['GET', ({ topupId }) => `/v1/topups/${topupId}`]];
const EVENT_PATHS: Operation[] = [['GET', ({ eventId }) => `/v1/events/${eventId}`]];

const NEVER_EXISTED: Rows = {
  orderId: 'ord_00000000000000000000000000',
  esimId: 'esim_00000000000000000000000000',
  eventId: 'evt_00000000000000000000000000',
  topupId: 'top_00000000000000000000000000',
};

describe.each(STRANGERS)('$name', ({ api, target }) => {
  it('gets the same 404 as for an unknown id, byte for byte, with every id and operation', async () => {
    const operations = [...ORDER_PATHS, ...ESIM_PATHS, ...TOPUP_PATHS, ...EVENT_PATHS];
    if (api() !== aLive) operations.push(...SANDBOX_PATHS);
    for (const [method, path, body] of operations) {
      const [answer, unknown] = await Promise.all(
        [target(), NEVER_EXISTED].map((rows) => api().call(method, path(rows), { body })),
      );
      expectProblem(answer!, 404, 'not_found');
      expect(withoutRequestId(answer!)).toBe(withoutRequestId(unknown!));
      expect([...answer!.headers.keys()].sort()).toEqual([...unknown!.headers.keys()].sort());
    }
  });

  it('cannot top up a foreign eSIM, and gets the same 404 as for an unknown one', async () => {
    const [answer, unknown] = await Promise.all(
      [target(), NEVER_EXISTED].map(({ esimId }) =>
        api().post('/v1/topups', { esim_id: esimId, package_id: TOPUP_PACKAGE }),
      ),
    );
    expectProblem(answer!, 404, 'not_found');
    expect(withoutRequestId(answer!)).toBe(withoutRequestId(unknown!));
  });

  it('finds nothing in any list, whatever the filter', async () => {
    const { orderId, esimId, eventId, topupId } = target();
    const { rows } = await service.database.pool.query('SELECT iccid FROM esims WHERE id = $1', [esimId]);
    const queries = [
      '/v1/orders',
      '/v1/orders?status=issued',
      '/v1/orders?reference=a-3',
      '/v1/orders?created_after=2001-01-01T00:00:00Z',
      '/v1/esims',
      '/v1/esims?status=issued',
      `/v1/esims?order_id=${orderId}`,
      `/v1/esims?iccid=${rows[0].iccid}`,
      '/v1/topups',
      '/v1/topups?status=completed',
      '/v1/topups?reference=a-3',
      `/v1/topups?esim_id=${esimId}`,
      '/v1/events',
      '/v1/events?type=order.issued',
    ];
    for (const query of queries) {
      const { text } = await api().get(query);
      for (const id of [orderId, esimId, eventId, topupId]) expect(text, query).not.toContain(id);
    }
  });
});

describe('the owner', () => {
  it.each<[string, () => HttpClient, () => Rows]>([
    ['sandbox', () => a.sandbox, () => sandboxRows],
    ['live', () => aLive, () => liveRows],
  ])('sees only the rows of its own mode: %s', async (mode, api, rows) => {
    for (const [, path] of [...ESIM_PATHS, ...TOPUP_PATHS, ...EVENT_PATHS, ORDER_PATHS[0]!]) {
      expect((await api().get(path(rows()))).status, path(rows())).toBe(200);
    }
    expect((await api().get('/v1/orders')).body.data.map((order: Json) => order['mode'])).toEqual([
      mode,
      mode,
      mode,
    ]);
    expect((await api().get('/v1/orders?reference=a-3')).body.data).toMatchObject([{ id: rows().orderId }]);
    expect((await readFeed(api())).map((event) => event['id'])).toContain(rows().eventId);
    expect((await api().get('/v1/me')).body.data).toMatchObject({ mode, partner_id: a.id });
  });

  it('sees its own top-ups only', async () => {
    for (const [api, { topupId }] of [
      [a.sandbox, sandboxRows],
      [aLive, liveRows],
    ] as const) {
      expect((await api.get('/v1/topups')).body.data).toHaveLength(3);
      expect((await api.get('/v1/topups?reference=a-3')).body.data).toMatchObject([{ id: topupId }]);
    }
    expect((await b.sandbox.get('/v1/topups')).body.data).toEqual([]);
  });

  it("finds its rows unchanged after other partners' attempts", async () => {
    const { rows } = await service.database.pool.query(
      'SELECT DISTINCT status, profile_status, used_bytes FROM esims',
    );
    expect(rows).toEqual([{ status: 'issued', profile_status: 'released', used_bytes: '0' }]);
    expect((await service.database.pool.query('SELECT DISTINCT status FROM orders')).rows).toEqual([
      { status: 'issued' },
    ]);
  });
});

describe('a cursor', () => {
  it.each([
    '/v1/orders?limit=1',
    '/v1/esims?limit=1',
    '/v1/topups?limit=1',
    '/v1/catalog?limit=1',
    '/v1/events?limit=1',
  ])('works only for its own partner and mode: %s', async (path) => {
    const { next_cursor } = (await a.sandbox.get(path)).body;
    const next = `${path}&cursor=${next_cursor}`;
    expect((await a.sandbox.get(next)).status).toBe(200);
    for (const api of [b.sandbox, aLive]) expectProblem(await api.get(next), 400, 'invalid_cursor');
  });

  it('cannot be replaced by an event id of another partner or mode', async () => {
    expect((await a.sandbox.get(`/v1/events?after=${sandboxRows.eventId}`)).status).toBe(200);
    for (const { api, target } of STRANGERS) {
      const answer = await api().get(`/v1/events?after=${target().eventId}`);
      expectProblem(answer, 400, 'invalid_cursor');
      const unknown = await api().get(`/v1/events?after=${NEVER_EXISTED.eventId}`);
      expect(withoutRequestId(answer)).toBe(withoutRequestId(unknown));
    }
  });
});

describe('the catalog', () => {
  it('neither shows nor sells Live packages in Sandbox', async () => {
    expect((await aLive.get('/v1/catalog/pkg_live_only')).status).toBe(200);
    for (const api of [a.sandbox, b.sandbox]) {
      const answer = await api.get('/v1/catalog/pkg_live_only');
      expect(withoutRequestId(answer)).toBe(withoutRequestId(await api.get('/v1/catalog/pkg_no_such')));
      expect((await api.get('/v1/catalog?country=FR&limit=100')).text).not.toContain('pkg_live_only');
      expectProblem(await api.post('/v1/orders', { package_id: 'pkg_live_only' }), 404, 'not_found');
    }
  });

  it('neither shows nor sells Sandbox packages in Live', async () => {
    expect((await aLive.get('/v1/catalog')).body.data.map((item: Json) => item['id'])).toEqual([
      'pkg_live_only',
    ]);
    expectProblem(await aLive.get('/v1/catalog/pkg_fr_1gb_7d'), 404, 'not_found');
    expectProblem(await aLive.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }), 404, 'not_found');
  });
});

const ORDER = { package_id: 'pkg_fr_1gb_7d' };

describe('an idempotency key', () => {
  it('identifies separate operations for two partners and for two modes', async () => {
    const idempotencyKey = randomUUID();
    const first = await a.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    const others = [
      await b.sandbox.post('/v1/orders', ORDER, { idempotencyKey }),
      await aLive.post('/v1/orders', ORDER, { idempotencyKey }),
    ];
    expect(first.status).toBe(202);
    for (const other of others) {
      expect(other.headers.get('idempotent-replayed')).toBeNull();
      expect(other.body.request_id).not.toBe(first.body.request_id);
    }
    expect(others[0]!.body.data.id).not.toBe(first.body.data.id);
    expectProblem(others[1]!, 404, 'not_found');
    const { rows } = await service.database.pool.query('SELECT scope FROM idempotency_keys WHERE key = $1', [
      idempotencyKey,
    ]);
    expect(rows).toHaveLength(3);
  });

  it('does not reveal that another partner has used it', async () => {
    const idempotencyKey = randomUUID();
    await a.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    const answer = await b.sandbox.post('/v1/orders', { ...ORDER, quantity: 2 }, { idempotencyKey });
    expect([answer.status, answer.body.data.quantity]).toEqual([202, 2]);
  });

  it('identifies the same operation through another key of the same partner and mode', async () => {
    const idempotencyKey = randomUUID();
    const second = service.partnerApi(await service.createKey(a.id, 'sandbox'));
    const first = await a.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    const replay = await second.post('/v1/orders', ORDER, { idempotencyKey });
    expect([replay.text, replay.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
  });
});

describe('a reference', () => {
  it('is unique only within its own partner and mode', async () => {
    const order = { ...ORDER, reference: 'the-same' };
    const { id } = await placeOrder(a.sandbox, order);
    await orderEnded(a.sandbox, id as string);
    await copyToLive(service.database, await rowsOf(service.database, id as string));
    await placeOrder(b.sandbox, order);
    expectProblem(await a.sandbox.post('/v1/orders', order), 409, 'reference_taken');
  });
});

describe('event isolation', () => {
  let receivers: Record<'aSandbox' | 'aLive' | 'bSandbox', TestReceiver>;

  beforeAll(async () => {
    // Orders of earlier tests must end first, or a new endpoint would receive their events.
    await eventually('no order is under way', async () => {
      const open = await service.database.pool.query(
        `SELECT 1 FROM orders WHERE status IN ('pending', 'processing')`,
      );
      return open.rowCount === 0;
    });
    const [forSandbox, forLive, forB] = await Promise.all([
      startReceiver(),
      startReceiver(),
      startReceiver(),
    ]);
    receivers = { aSandbox: forSandbox, aLive: forLive, bSandbox: forB };
    await register(a.id, 'sandbox', forSandbox);
    await register(a.id, 'live', forLive);
    await register(b.id, 'sandbox', forB);
  });

  afterAll(async () => {
    await Promise.all(Object.values(receivers).map((receiver) => receiver.close()));
  });

  async function register(partnerId: string, mode: string, { url }: TestReceiver): Promise<void> {
    const answer = await service.admin.post(`/internal/v1/partners/${partnerId}/webhook-endpoints`, {
      mode,
      url,
    });
    expect(answer.status).toBe(201);
  }

  it('sends events only to the endpoints and the feed of their own partner and mode', async () => {
    const { id } = await placeOrder(a.sandbox, ORDER);
    await orderEnded(a.sandbox, id as string);
    const rows = await rowsOf(service.database, id as string);
    const live = await copyToLive(service.database, rows);
    await service.database.pool.query('UPDATE esims SET install_by = now() WHERE id = $1', [live.esimId]);
    const other = await placeOrder(b.sandbox, ORDER);

    await arrives('aSandbox', 'order.issued', rows.orderId);
    await arrives('aLive', 'esim.expired', live.orderId);
    await arrives('bSandbox', 'order.issued', other['id'] as string);
    await eventually('nothing is owed any more', async () => {
      const owed = await service.database.pool.query(
        `SELECT 1 FROM webhook_deliveries WHERE status = 'pending'`,
      );
      return owed.rowCount === 0;
    });
    expect(ordersAt('aSandbox')).toEqual([rows.orderId]);
    expect(ordersAt('aLive')).toEqual([live.orderId]);
    expect(ordersAt('bSandbox')).toEqual([other['id']]);

    for (const [api, mine, foreign] of [
      [a.sandbox, rows.orderId, [live.orderId, other['id']]],
      [aLive, live.orderId, [rows.orderId, other['id']]],
      [b.sandbox, other['id'], [rows.orderId, live.orderId]],
    ] as const) {
      const orders = (await readFeed(api)).map((event) => event['data'].order_id as string);
      expect(orders).toContain(mine);
      for (const id of foreign) expect(orders).not.toContain(id);
    }
  });

  it('creates deliveries only for endpoints of the same partner and mode', async () => {
    const { rows } = await service.database.pool.query(
      `SELECT d.id FROM webhook_deliveries d JOIN events v ON v.id = d.event_id
       JOIN webhook_endpoints w ON w.id = d.endpoint_id WHERE (v.partner_id, v.mode) <> (w.partner_id, w.mode)`,
    );
    expect(rows).toEqual([]);
  });

  const ordersAt = (name: keyof typeof receivers): string[] =>
    receivers[name].received.map(({ body }) => JSON.parse(body).data.order_id as string);

  const arrives = (name: keyof typeof receivers, type: string, orderId: string): Promise<boolean> =>
    eventually(`${type} of ${orderId} at ${name}`, () =>
      receivers[name].received.some(
        ({ headers, body }) => headers['x-service-event'] === type && body.includes(orderId),
      ),
    );
});
