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
import { expectProblem } from '../harness/expect-problem.js';
import { copyToLive, rowsOf } from '../harness/live-rows.js';
import { orderEnded, placeOrder, readFeed } from '../harness/order-steps.js';

let service: TestService;
let a: TestPartner;
let b: TestPartner;
let aLive: HttpClient;

beforeAll(async () => {
  // A stalled worker's lease would lapse, and its webhook be sent once more.
  service = await startTestService({ env: { LEASE_MS: '60000' } });
  [a, b] = await Promise.all([service.createPartner('A'), service.createPartner('B')]);
  aLive = service.partnerApi(await service.createKey(a.id, 'live'));
});

afterAll(() => service.stop());

const ORDER = { package_id: 'pkg_fr_1gb_7d' };

describe('an idempotency key', () => {
  it('names separate operations for two partners and for two modes', async () => {
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

  it('does not tell one partner that another has used it for something else', async () => {
    const idempotencyKey = randomUUID();
    await a.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    const answer = await b.sandbox.post('/v1/orders', { ...ORDER, quantity: 2 }, { idempotencyKey });
    expect([answer.status, answer.body.data.quantity]).toEqual([202, 2]);
  });

  it('is the same operation through another key of the same partner and mode', async () => {
    const idempotencyKey = randomUUID();
    const second = service.partnerApi(await service.createKey(a.id, 'sandbox'));
    const first = await a.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
    const replay = await second.post('/v1/orders', ORDER, { idempotencyKey });
    expect([replay.text, replay.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
  });
});

describe('a reference', () => {
  it('is taken for its own partner and mode only', async () => {
    const order = { ...ORDER, reference: 'the-same' };
    const { id } = await placeOrder(a.sandbox, order);
    await orderEnded(a.sandbox, id as string);
    await copyToLive(service.database, await rowsOf(service.database, id as string));
    await placeOrder(b.sandbox, order);
    expectProblem(await a.sandbox.post('/v1/orders', order), 409, 'reference_taken');
  });
});

describe('events', () => {
  let receivers: Record<'aSandbox' | 'aLive' | 'bSandbox', TestReceiver>;

  beforeAll(async () => {
    // What the tests before have ordered: an endpoint that is registered while it is under way would be told of it.
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

  it('go to the endpoints and the feed of their own partner and mode, and nowhere else', async () => {
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

  it('become deliveries of endpoints of the same partner and mode only', async () => {
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
