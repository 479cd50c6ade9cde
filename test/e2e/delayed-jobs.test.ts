import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { redisMissing, startRedis, type TestRedis } from '../harness/redis.js';

const missing = redisMissing();
if (missing) console.warn(`delayed jobs in Redis are not tested: ${missing}`);

/** Longer than the test, so all work is triggered by a delayed job, not by a sweep. */
const SWEEP_MS = 60_000;
const WITHIN_MS = 40_000;
const TEST_MS = 90_000;
/** Longer than the delays for which a worker uses its own timer. */
const RETRY_MS = 2_500;

describe.each([
  ['PostgreSQL', null],
  ['Redis', missing],
])('a delayed job in %s', (backend, reason) => {
  describe.skipIf(reason !== null)(`(${backend} is available)`, () => {
    let redis: TestRedis | null = null;
    let service: TestService;
    let partner: TestPartner;
    let receiver: TestReceiver;

    // The first sweep runs at startup, and the second one is not due during the test.
    beforeAll(async () => {
      redis = backend === 'Redis' ? await startRedis() : null;
      service = await startTestService({
        env: {
          ...(redis ? { REDIS_URL: redis.url } : {}),
          SWEEP_INTERVAL_MS: String(SWEEP_MS),
          WEBHOOK_RETRY_DELAYS_MS: Array(5).fill(RETRY_MS).join(','),
        },
      });
      partner = await service.createPartner();
      receiver = await startReceiver();
    });
    afterAll(async () => {
      await service?.stop();
      await receiver?.close();
      await redis?.kill();
    });

    it(
      'triggers the retry of a delivery, and wakes up an order that its provider has not finished',
      async () => {
        const path = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
        const made = await service.admin.post(path, { mode: 'sandbox', url: receiver.url });
        expect(made.status, made.text).toBe(201);
        const seen = new Set<string>();
        receiver.answer = (_nth, { body }, response) => {
          response.writeHead(seen.has(body) ? 200 : 500).end();
          seen.add(body);
        };
        const { id: slow } = await placeOrder(partner.sandbox, { package_id: 'pkg_test_slow' });
        const { pool } = service.database;
        await eventually('the provider has it, and the worker will ask again', async () => {
          const { rowCount } = await pool.query(
            `SELECT 1 FROM orders o JOIN sandbox_upstream_orders u ON u.reference = o.provider_reference
             WHERE o.id = $1 AND o.status = 'processing' AND o.next_attempt_at > now() AND o.lease_until IS NULL`,
            [slow],
          );
          return rowCount === 1;
        });
        const { rows } = await pool.query<{ at: Date }>(
          `UPDATE sandbox_upstream_orders SET ready_at = now() RETURNING now() AS at`,
        );
        const { id: quick } = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
        const retried = eventually(
          'the first attempt and its retry',
          () => {
            const ofQuick = receiver.received.filter(({ body }) => body.includes(quick as string));
            return ofQuick.length === 2 && ofQuick;
          },
          WITHIN_MS,
        );
        const issued = eventually(
          'the order is issued',
          async () => {
            const { data } = (await partner.sandbox.get(`/v1/orders/${slow}`)).body;
            return data.status === 'issued' ? data : null;
          },
          WITHIN_MS,
        );
        const [[first, second], order] = await Promise.all([retried, issued]);
        expect(second!.body).toBe(first!.body);
        expect(second!.receivedAtMs - first!.receivedAtMs).toBeGreaterThanOrEqual(RETRY_MS - 100);
        expect(Date.parse(order.issued_at as string)).toBeGreaterThan(rows[0]!.at.getTime());
      },
      TEST_MS,
    );
  });
});
