import { Inject, Injectable, type OnApplicationShutdown, Optional } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { type Counter, Gauge, Registry } from 'prom-client';
import { withinLimit } from '../common/time-limit.js';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { LOGGER } from '../infra/logging.js';
import { counterIn, METRICS } from '../infra/metrics.js';
import { openRedis } from '../infra/redis-client.js';
import type { BucketState, RateLimitShape } from './rate-limit.js';

/** Timeout of a charge. Only the first calls wait for a failing Redis. Each false alarm gives keys a second burst. */
const ANSWER_LIMIT_MS = 250;
/** After a failure PostgreSQL's buckets are used, and Redis is probed at this interval. */
const ASK_AGAIN_MS = 5_000;
/** Injection token that overrides the interval, in milliseconds. */
const ASK_AGAIN = Symbol('ASK_AGAIN');
/** A bucket that belongs to no caller, written as a probe. */
const ASKED = new Map([['nobody', 1]]);

/** GCRA with Redis's own clock; KEYS = buckets, ARGV = burst, microseconds per token, calls of each bucket. */
const CHARGE_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst, t = tonumber(ARGV[1]), tonumber(ARGV[2])
local out = { string.format('%.0f', now) }
for i, key in ipairs(KEYS) do
  local tat = tonumber(redis.call('GET', key) or 0)
  if tat < now then tat = now end
  -- No bucket is more than empty: a clock that was set back left this one in the future.
  local ahead = tat > now + burst * t
  if ahead then tat = now + burst * t end
  local granted = math.min(tonumber(ARGV[i + 2]), math.floor((now + burst * t - tat) / t))
  if granted < 0 then granted = 0 end
  tat = tat + granted * t
  if granted > 0 or ahead then redis.call('SET', key, string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1000) end
  out[#out + 1] = granted
  out[#out + 1] = string.format('%.0f', tat)
end
return out`;

/** The rate-limit buckets in Redis, when `REDIS_URL` is set (D21). Returns null on every failure. */
@Injectable()
export class RedisBuckets implements OnApplicationShutdown {
  private readonly redis: Redis | null;
  private readonly fallbacks: Counter;
  private failing = false;
  private stopped = false;
  private asking: NodeJS.Timeout | undefined;

  constructor(
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'redis'>,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(METRICS) metrics: Registry = new Registry(),
    @Optional() @Inject(ASK_AGAIN) private readonly askAgainMs: number = ASK_AGAIN_MS,
  ) {
    this.fallbacks = this.showFallback(metrics);
    this.redis = config.redis === null ? null : openRedis(config.redis, 'fail');
  }

  /** Whether Redis is configured and has responded since its last failure. */
  get available(): boolean {
    return this.redis !== null && !this.failing;
  }

  async charge(
    calls: ReadonlyMap<string, number>,
    shape: RateLimitShape,
  ): Promise<Map<string, BucketState> | null> {
    const { redis } = this;
    if (!redis) return null;
    try {
      return await this.chargeIn(redis, calls, shape);
    } catch (error) {
      this.fail(redis, error);
      return null;
    }
  }

  /** Stops waiting for Redis until it responds to our own probe. */
  private fail(redis: Redis, err: unknown): void {
    if (this.failing) return;
    this.failing = true;
    this.fallbacks.inc();
    this.logger.warn({ event: 'rate_limit.redis_failed', err }, 'rate limit falls back to PostgreSQL');
    this.askLater(redis);
  }

  private askLater(redis: Redis): void {
    if (this.stopped) return;
    this.asking = setTimeout(() => void this.ask(redis), this.askAgainMs).unref();
  }

  private async ask(redis: Redis): Promise<void> {
    try {
      await this.chargeIn(redis, ASKED, { burst: 1, microsecondsPerToken: 1 });
      this.failing = false;
      this.logger.info({ event: 'rate_limit.redis_answers' }, 'rate limit uses Redis again');
    } catch {
      this.askLater(redis);
    }
  }

  /** @throws Error when Redis fails, or does not respond within 250 ms */
  private async chargeIn(
    redis: Redis,
    calls: ReadonlyMap<string, number>,
    shape: RateLimitShape,
  ): Promise<Map<string, BucketState>> {
    const keys = [...calls.keys()];
    const charge = () =>
      redis.eval(
        CHARGE_SCRIPT,
        keys.length,
        ...keys.map((key) => `rate:${key}`),
        shape.burst,
        shape.microsecondsPerToken,
        ...calls.values(),
      );
    const late = (): Error => new Error('Redis did not answer in time');
    const reply = (await withinLimit(ANSWER_LIMIT_MS, late, charge)) as (string | number)[];
    const nowUs = Number(reply[0]);
    return new Map(
      keys.map((key, i) => [
        key,
        { granted: Number(reply[1 + 2 * i]), tatUs: Number(reply[2 + 2 * i]), nowUs },
      ]),
    );
  }

  private showFallback(metrics: Registry): Counter {
    const isFailing = (): boolean => this.failing;
    // The process's last app registers it; only tests have more than one.
    metrics.removeSingleMetric('rate_limit_fallback');
    new Gauge({
      name: 'rate_limit_fallback',
      help: '1 while Redis is failing and the rate limit uses PostgreSQL instead; 0 without Redis.',
      registers: [metrics],
      collect() {
        this.set(isFailing() ? 1 : 0);
      },
    });
    return counterIn(metrics, {
      name: 'rate_limit_fallbacks_total',
      help: 'How often a Redis failure made the rate limit fall back to PostgreSQL.',
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.asking);
    this.redis?.disconnect();
    await Promise.resolve();
  }
}
