import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';

const ORDER = { package_id: 'pkg_fr_1gb_7d' };

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});

afterAll(() => service.stop());

/** As if so much time had passed since the call with the key. */
async function pass(idempotencyKey: string, interval: string): Promise<void> {
  const { rowCount } = await service.database.pool.query(
    'UPDATE idempotency_keys SET expires_at = expires_at - $2::interval WHERE key = $1',
    [idempotencyKey, interval],
  );
  expect(rowCount).toBe(1);
}

it('an idempotency key is remembered for 24 hours and no longer (D20)', async () => {
  const idempotencyKey = randomUUID();
  const post = () => partner.sandbox.post('/v1/orders', ORDER, { idempotencyKey });
  const first = await post();
  // Ten minutes before its end, more than any machine takes for these lines.
  await pass(idempotencyKey, '23 hours 50 minutes');
  const replay = await post();
  expect([replay.headers.get('idempotent-replayed'), replay.text]).toEqual(['true', first.text]);
  await pass(idempotencyKey, '10 minutes');
  const second = await post();
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([202, null]);
  expect(second.body.data.id).not.toBe(first.body.data.id);
});
