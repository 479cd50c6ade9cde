import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});

afterAll(() => service.stop());

it('keeps pkg_test_slow processing for 20 s provider, and issues it as soon as that is over', async () => {
  const { id } = await placeOrder(partner.sandbox, { package_id: 'pkg_test_slow' });
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

  // Twenty seconds later, without waiting for them.
  await service.database.pool.query('UPDATE sandbox_upstream_orders SET ready_at = now()');
  await service.database.pool.query('UPDATE orders SET next_attempt_at = now()');
  expect(await orderEnded(partner.sandbox, id as string)).toMatchObject({
    status: 'issued',
    quantity_issued: 1,
  });
});
