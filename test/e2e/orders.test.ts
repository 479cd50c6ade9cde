import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiAnswer,
  eventually,
  PATIENCE_MS,
  type HttpClient,
  leastOf,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';

let service: TestService;
let partner: TestPartner;
let api: HttpClient;
let receiver: TestReceiver;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  api = partner.sandbox;
  receiver = await startReceiver();
  await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    mode: 'sandbox',
    url: receiver.url,
  });
});

afterAll(async () => {
  await service.stop();
  await receiver.close();
});

async function place(body: object): Promise<{ id: string }> {
  const answer = await api.post('/v1/orders', body);
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as { id: string };
}

async function ended(id: string, withinMs = PATIENCE_MS): Promise<ApiAnswer['body']> {
  return eventually(
    `order ${id} ends`,
    async () => {
      const { data } = (await api.get(`/v1/orders/${id}`)).body;
      return data.status === 'pending' || data.status === 'processing' ? null : data;
    },
    withinMs,
  );
}

async function webhook(type: string, orderId: string): Promise<ApiAnswer['body']> {
  return eventually(`${type} of ${orderId}`, () =>
    receiver.received
      .map((item) => JSON.parse(item.body))
      .find((event) => event.type === type && event.data.order_id === orderId),
  );
}

describe('POST /v1/orders', () => {
  it('accepts an order, issues its eSIM and announces it with exactly the documented data', async () => {
    const answer = await api.post('/v1/orders', {
      package_id: 'pkg_fr_1gb_7d',
      reference: 'booking-1',
      metadata: { traveler: 'A-17' },
    });
    expect(answer.status).toBe(202);
    expect(answer.headers.get('location')).toBe(`/v1/orders/${answer.body.data.id}`);
    expect(answer.body.data).toMatchObject({
      status: 'pending',
      version: 1,
      quantity: 1,
      esims: [],
      mode: 'sandbox',
    });

    const order = await ended(answer.body.data.id);
    expect(order).toMatchObject({
      status: 'issued',
      version: 3,
      quantity_issued: 1,
      quantity_failed: 0,
      reference: 'booking-1',
      metadata: { traveler: 'A-17' },
      failure: null,
    });
    const [esim] = order['esims'];
    const event = await webhook('order.issued', order['id']);
    expect(Object.keys(event).sort()).toEqual(['created_at', 'data', 'id', 'type']);
    expect(event['data']).toEqual({
      order_id: order['id'],
      reference: 'booking-1',
      package_id: 'pkg_fr_1gb_7d',
      quantity_issued: 1,
      quantity_failed: 0,
      esims: [{ esim_id: esim.esim_id, iccid: esim.iccid }],
      version: 3,
    });
  });

  it('shows install data in the two documented reads, and nowhere else', async () => {
    const { id } = await place({ package_id: 'pkg_fr_1gb_7d' });
    const order = await ended(id);
    const esimId = order['esims'][0].esim_id as string;
    const { data: esim } = (await api.get(`/v1/esims/${esimId}`)).body;
    expect(esim.activation_code).toBe(`LPA:1$${esim.smdp_address}$${esim.matching_id}`);
    expect(esim).toMatchObject({ confirmation_code_required: false, pin: null, puk: null });
    expect(esim.install.ios_url).toBe(
      `https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=${esim.activation_code}`,
    );
    expect(esim.iccid).toMatch(/^89\d{17}$/);
    const { data: qr } = (await api.get(`/v1/esims/${esimId}/qr`)).body;
    expect(qr.activation_code).toBe(esim.activation_code);
    expect(qr.svg).toContain('<svg');
    expect(Buffer.from(qr.png_base64, 'base64').subarray(1, 4).toString()).toBe('PNG');

    const elsewhere = await Promise.all([
      api.get('/v1/esims?limit=100'),
      api.get(`/v1/orders/${id}`),
      api.get(`/v1/esims/${esimId}/usage`),
      api.get('/v1/events'),
      api.post(`/v1/sandbox/esims/${esimId}/activate`),
      service.admin.get(`/internal/v1/partners/${partner.id}/esims`),
    ]);
    for (const answer of elsewhere) {
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain(esim.matching_id);
      expect(answer.text).not.toContain('activation_code');
    }
    expect(receiver.received.map((item) => item.body).join()).not.toContain(esim.matching_id);
    const { rows } = await service.database.pool.query('SELECT install_secrets FROM esims');
    expect(JSON.stringify(rows)).not.toContain(esim.matching_id);
  });

  it.each([
    ['pkg_test_out_of_stock', 'package_unavailable'],
    ['pkg_test_insufficient_balance', 'insufficient_balance'],
  ])('fails %s after the 202 with order.failed %s and refunds everything', async (packageId, code) => {
    const { id } = await place({ package_id: packageId, quantity: 2 });
    const order = await ended(id);
    expect(order).toMatchObject({ status: 'failed', failure: { code }, quantity_failed: 2 });
    expect(order['refunded']).toEqual(order['total']);
    const event = await webhook('order.failed', id);
    expect(event['data']).toMatchObject({ code, refunded: order['total'], package_id: packageId });
  });

  it('issues ceil(0.6 x quantity) of the partial package and refunds the rest', async () => {
    const { id } = await place({ package_id: 'pkg_test_partial', quantity: 5 });
    const order = await ended(id);
    expect(order).toMatchObject({ status: 'partially_issued', quantity_issued: 3, quantity_failed: 2 });
    expect(order['refunded'].amount).toBe(order['unit_price'].amount * 2);
    expect(order['esims']).toHaveLength(3);
    expect((await webhook('order.issued', id))['data']).toMatchObject({
      quantity_issued: 3,
      quantity_failed: 2,
    });
  });

  it('keeps pkg_test_slow processing for 20 s of provider time, and issues it right after', async () => {
    const { id } = await place({ package_id: 'pkg_test_slow' });
    const upstream = await eventually('the upstream has the order', async () => {
      const { rows } = await service.database.pool.query(
        `SELECT extract(epoch FROM u.ready_at - u.created_at)::int AS seconds, o.status
         FROM sandbox_upstream_orders u JOIN orders o ON o.provider_reference = u.reference
         WHERE o.id = $1 AND o.next_attempt_at > now() + interval '10 seconds'`,
        [id],
      );
      return rows[0] as { seconds: number; status: string } | undefined;
    });
    expect(upstream).toEqual({ seconds: 20, status: 'processing' });

    // Simulates the twenty seconds instead of waiting.
    await service.database.pool.query('UPDATE sandbox_upstream_orders SET ready_at = now()');
    await service.database.pool.query('UPDATE orders SET next_attempt_at = now() WHERE id = $1', [id]);
    expect(await ended(id)).toMatchObject({
      status: 'issued',
      quantity_issued: 1,
    });
  });

  it('recovers within 10 s when the provider did not respond, and buys once', async () => {
    const promisedMs = 10_000;
    const quickestMs = await leastOf(promisedMs, async () => {
      const startedAt = performance.now();
      const { id } = await place({ package_id: 'pkg_test_timeout' });
      const order = await ended(id);
      const elapsedMs = performance.now() - startedAt;
      expect(order).toMatchObject({ status: 'issued', quantity_issued: 1 });
      const { rows } = await service.database.pool.query(
        `SELECT (SELECT count(*)::int FROM esims WHERE order_id = $1) AS esims,
                (SELECT count(*)::int FROM sandbox_upstream_orders u JOIN orders o ON o.provider_reference = u.reference
                 WHERE o.id = $1) AS purchases`,
        [id],
      );
      expect(rows[0]).toEqual({ esims: 1, purchases: 1 });
      return elapsedMs;
    });
    expect(quickestMs).toBeLessThan(promisedMs);
  });

  it('refuses unsellable packages with the documented code, and creates no order', async () => {
    const before = (await api.get('/v1/orders?limit=100')).body.data.length;
    const refusals = [
      [{ package_id: 'pkg_no_such' }, 404, 'not_found'],
      [{ package_id: 'pkg_fr_topup_1gb_7d' }, 409, 'package_unavailable'],
      [{ package_id: 'pkg_gr_2gb_15d' }, 409, 'package_unavailable'],
      [{ package_id: 'pkg_fr_1gb_7d', max_unit_price: { amount: 1, currency: 'USD' } }, 409, 'price_changed'],
      [
        { package_id: 'pkg_fr_1gb_7d', max_unit_price: { amount: 100_000, currency: 'EUR' } },
        409,
        'price_changed',
      ],
    ] as const;
    for (const [body, status, code] of refusals) {
      const answer = await api.post('/v1/orders', body);
      expect([answer.status, answer.body.code]).toEqual([status, code]);
    }
    expect((await api.get('/v1/orders?limit=100')).body.data).toHaveLength(before);
  });

  it('cancels and refunds eSIMs that nobody downloaded, and refuses once one is active', async () => {
    const { id } = await place({ package_id: 'pkg_fr_1gb_7d' });
    await ended(id);
    const canceled = await api.post(`/v1/orders/${id}/cancel`);
    expect([canceled.status, canceled.body.data.status]).toEqual([202, 'canceling']);
    const order = await eventually('canceled', async () => {
      const { data } = (await api.get(`/v1/orders/${id}`)).body;
      return data.status === 'canceled' ? data : null;
    });
    expect(order.refunded).toEqual(order.total);
    expect(order.esims[0].status).toBe('canceled');
    expect((await api.post(`/v1/orders/${id}/cancel`)).body.code).toBe('order_not_cancelable');

    const active = await place({ package_id: 'pkg_fr_1gb_7d' });
    const issued = await ended(active.id);
    await api.post(`/v1/sandbox/esims/${issued['esims'][0].esim_id}/activate`);
    expect((await api.post(`/v1/orders/${active.id}/cancel`)).body.code).toBe('order_not_cancelable');
  });
});

describe('a cancellation in progress', () => {
  it('does not take back an eSIM that was activated in the meantime, and restores the order', async () => {
    const { id } = await place({ package_id: 'pkg_fr_1gb_7d' });
    await ended(id);
    const { pool } = service.database;
    await pool.query(`UPDATE esims SET status = 'active', profile_status = 'enabled' WHERE order_id = $1`, [
      id,
    ]);
    await pool.query(
      `UPDATE orders SET status = 'canceling', status_before_cancel = 'issued', next_attempt_at = now() WHERE id = $1`,
      [id],
    );
    const order = await eventually('settled', async () => {
      const { data } = (await api.get(`/v1/orders/${id}`)).body;
      return data.status === 'canceling' ? null : data;
    });
    expect(order).toMatchObject({ status: 'issued', cancel_failure: { code: 'provider_rejected' } });
    expect(order.refunded.amount).toBe(0);
    expect(order.esims[0].status).toBe('active');
  });
});

describe('usage', () => {
  it('reports the percentage without a rounding error', async () => {
    const { id } = await place({ package_id: 'pkg_fr_1gb_7d' });
    const esimId = (await ended(id))['esims'][0].esim_id as string;
    await api.post(`/v1/sandbox/esims/${esimId}/activate`);
    await api.post(`/v1/sandbox/esims/${esimId}/consume`, { percent: 57 });
    expect((await api.get(`/v1/esims/${esimId}/usage`)).body.data.percent_used).toBe(57);
    await api.post(`/v1/sandbox/esims/${esimId}/expire`);
    expect((await api.get(`/v1/esims/${esimId}/topup-packages?limit=5`)).body).toMatchObject({
      data: [],
      has_more: false,
      next_cursor: null,
    });
  });
});
