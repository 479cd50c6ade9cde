import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { redisMissing, startRedis, type TestRedis } from '../harness/redis.js';

const missing = redisMissing();
if (missing) console.warn(`tests on Redis are skipped: ${missing}`);

describe.skipIf(missing !== null)('with REDIS_URL', () => {
  let redis: TestRedis;
  let service: TestService;
  let receiver: TestReceiver;

  beforeAll(async () => {
    redis = await startRedis();
    service = await startTestService({
      env: {
        REDIS_URL: redis.url,
        RATE_LIMIT_PER_MINUTE: '60',
        RATE_LIMIT_BURST: '120',
        SHUTDOWN_TIMEOUT_MS: '1000',
      },
    });
    receiver = await startReceiver();
  });

  afterAll(async () => {
    await service.stop();
    await receiver.close();
    await redis.kill();
  });

  it('limits calls, issues orders and delivers events, even while Redis is down and after it is back', async () => {
    const limited = await service.createPartner('Limited');
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 400 }, () => limited.sandbox.get('/v1/me')));
    const refilled = Math.ceil((performance.now() - startedAt) / 1000);
    const passed = answers.filter((answer) => answer.status === 200).length;
    expect(passed).toBeGreaterThanOrEqual(120);
    // On a busy machine Redis may be too slow for some calls, which PostgreSQL's bucket then limits.
    // test/auth/redis-buckets.test.ts tests how exact a bucket is.
    expect(passed).toBeLessThanOrEqual(2 * (120 + refilled));
    expect(answers.every((answer) => answer.status === 200 || answer.status === 429)).toBe(true);

    const partner = await service.createPartner('Buyer');
    await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
      mode: 'sandbox',
      url: receiver.url,
    });
    await placeAndWait(partner.sandbox);

    await redis.kill();
    await placeAndWait(partner.sandbox);
    const after = await Promise.all(Array.from({ length: 150 }, () => limited.sandbox.get('/v1/me')));
    expect(after.filter((answer) => answer.status >= 500)).toEqual([]);
    // PostgreSQL's buckets start full, but still limit.
    expect(after.some((answer) => answer.status === 429)).toBe(true);

    redis = await startRedis({ port: redis.port });
    await placeAndWait(partner.sandbox);
  });

  async function placeAndWait(
    api: Awaited<ReturnType<TestService['createPartner']>>['sandbox'],
  ): Promise<void> {
    const answer = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    expect(answer.status, answer.text).toBe(202);
    const { id } = answer.body.data as { id: string };
    await eventually('the event is delivered', () =>
      receiver.received.some(
        (item) => (JSON.parse(item.body) as { data: { order_id: string } }).data.order_id === id,
      ),
    );
  }
});
