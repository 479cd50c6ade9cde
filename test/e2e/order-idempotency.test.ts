import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { postAtOnce } from '../harness/order-steps.js';

let service: TestService;
let api: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
});

afterAll(() => service.stop());

/** Waits until the order has ended. */
async function ended(id: string): Promise<void> {
  await eventually(`order ${id} ends`, async () => {
    const { status } = (await api.get(`/v1/orders/${id}`)).body.data;
    return status !== 'pending' && status !== 'processing';
  });
}

/** Moves the use of the key back by `interval`. */
async function pass(idempotencyKey: string, interval: string): Promise<void> {
  const { rowCount } = await service.database.pool.query(
    'UPDATE idempotency_keys SET expires_at = expires_at - $2::interval WHERE key = $1',
    [idempotencyKey, interval],
  );
  expect(rowCount).toBe(1);
}

describe('order idempotency', () => {
  it('places one order for fifty concurrent calls with the same key, and returns identical bytes', async () => {
    const answers = await postAtOnce(api, '/v1/orders', { package_id: 'pkg_de_1gb_7d' }, 50);
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(new Set(answers.map((answer) => answer.headers.get('x-request-id'))).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get('idempotent-replayed') === null)).toHaveLength(1);
    const id = answers[0]!.body.data.id as string;
    await ended(id);
    const { rows } = await service.database.pool.query(
      `SELECT count(DISTINCT o.id)::int AS orders, count(e.id)::int AS esims
       FROM orders o LEFT JOIN esims e ON e.order_id = o.id WHERE o.package_id = 'pkg_de_1gb_7d'`,
    );
    expect(rows[0]).toEqual({ orders: 1, esims: 1 });
  });

  it('places fifty orders for fifty concurrent keys', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => api.post('/v1/orders', { package_id: 'pkg_it_1gb_7d' })),
    );
    expect(new Set(answers.map((answer) => answer.body.data.id)).size).toBe(50);
    await Promise.all(answers.map((answer) => ended(answer.body.data.id)));
  });

  it('does not use the key of a call that failed validation, and refuses a used key for another request', async () => {
    const key = randomUUID();
    const invalid = await api.post('/v1/orders', { package_id: 7 }, { idempotencyKey: key });
    expect([invalid.status, invalid.body.code]).toEqual([400, 'validation_failed']);
    const corrected = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey: key });
    expect(corrected.status).toBe(202);
    const changed = await api.post('/v1/orders', { package_id: 'pkg_it_1gb_7d' }, { idempotencyKey: key });
    expect([changed.status, changed.body.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('remembers a key for 24 hours (D20)', async () => {
    const idempotencyKey = randomUUID();
    const post = () => api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' }, { idempotencyKey });
    const first = await post();
    // Ten minutes before it expires, more than any machine needs for these lines.
    await pass(idempotencyKey, '23 hours 50 minutes');
    const replay = await post();
    expect([replay.headers.get('idempotent-replayed'), replay.text]).toEqual(['true', first.text]);
    await pass(idempotencyKey, '10 minutes');
    const second = await post();
    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([202, null]);
    expect(second.body.data.id).not.toBe(first.body.data.id);
  });
});
