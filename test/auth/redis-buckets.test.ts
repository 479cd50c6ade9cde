import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisBuckets } from '../../src/auth/redis-buckets.js';
import { eventually } from '../harness/index.js';
import { redisMissing, startRedis, type TestRedis } from '../harness/redis.js';

const missing = redisMissing();
if (missing) console.warn(`tests of the buckets in Redis are skipped: ${missing}`);

const HOUR_US = 3_600_000_000;
const SHAPE = { burst: 5, microsecondsPerToken: HOUR_US };

describe.skipIf(missing !== null)('a bucket in Redis', () => {
  let redis: TestRedis;
  let buckets: RedisBuckets;

  beforeAll(async () => {
    redis = await startRedis();
    buckets = new RedisBuckets({ redis: { topology: 'single', url: redis.url } }, pino({ level: 'silent' }));
  });

  afterAll(async () => {
    await buckets.onApplicationShutdown();
    await redis.kill();
  });

  /** Redis may be too slow on a busy machine and return null. The next try then uses a new, full bucket. */
  function charged<T>(charge: (key: string) => Promise<T | null>): Promise<T> {
    let tries = 0;
    return eventually('Redis answers in time', () => charge(`bucket-${tries++}-${performance.now()}`));
  }

  it('grants exactly the burst to concurrent calls when no token is refilled in the meantime', async () => {
    const state = await charged(
      async (key) => (await buckets.charge(new Map([[key, 20]]), SHAPE))?.get(key) ?? null,
    );
    expect(state.granted).toBe(SHAPE.burst);
  });

  it('is empty, but not in debt, after the clock was set back (D21)', async () => {
    const shape = { burst: 5, microsecondsPerToken: 100_000 };
    const client = new Redis(redis.url);
    const charge = async (key: string) =>
      (await buckets.charge(new Map([[key, 1]]), shape))?.get(key) ?? null;
    let bucket = '';
    const first = await charged(async (key) => {
      bucket = key;
      await client.set(`rate:${key}`, String((Date.now() + 86_400_000) * 1_000));
      return charge(key);
    });
    client.disconnect();
    expect(first.granted).toBe(0);
    expect(first.tatUs - first.nowUs).toBeLessThanOrEqual(shape.burst * shape.microsecondsPerToken);
    await eventually('a token', async () => (await charge(bucket))?.granted === 1);
  });

  it('does not fall back because this process was too busy to read the reply', async () => {
    const shown = await charged(async (key) => (await buckets.charge(new Map([[key, 1]]), SHAPE)) && key);
    const charge = buckets.charge(new Map([[shown, 1]]), SHAPE);
    // The command is sent, and its reply arrives while this process is blocked.
    await new Promise((resolve) => setImmediate(resolve));
    const until = performance.now() + 2_000;
    while (performance.now() < until);
    expect((await charge)?.get(shown)?.granted).toBe(1);
  });

  it('grants exactly the burst to consecutive calls', async () => {
    const granted = await charged(async (key) => {
      const states = [];
      for (let call = 0; call < 8; call++) {
        states.push((await buckets.charge(new Map([[key, 1]]), SHAPE))?.get(key)?.granted);
      }
      return states.includes(undefined) ? null : states;
    });
    expect(granted).toEqual([1, 1, 1, 1, 1, 0, 0, 0]);
  });
});

describe.skipIf(missing !== null)('a failing Redis behind the rate limit', () => {
  it('is reported by the metric and receives no charges until it responds again, with or without calls', async () => {
    const metrics = new Registry();
    const shown = async () => (await metrics.getSingleMetric('rate_limit_fallback')!.get()).values[0]!.value;
    const first = await startRedis();
    const config = { redis: { topology: 'single', url: first.url } } as const;
    const buckets = new RedisBuckets(config, pino({ level: 'silent' }), metrics, 20);
    const charge = () => buckets.charge(new Map([['bucket', 1]]), SHAPE);
    await eventually('it charges', async () => (await charge()) !== null && buckets.available);
    await first.kill();
    await eventually('a charge fails', async () => (await charge()) === null);
    const asked: boolean[] = [];
    await eventually('it was asked in vain', () => asked.push(buckets.available) > 20);
    expect([new Set(asked), await shown()]).toEqual([new Set([false]), 1]);
    const second = await startRedis({ port: first.port });
    await eventually('it is used again', () => buckets.available);
    expect(await shown()).toBe(0);
    await buckets.onApplicationShutdown();
    await second.kill();
  });
});
