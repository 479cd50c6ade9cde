import { Injectable } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { ApiKeyAuthRepository } from './api-key-auth.repository.js';
import { type RateLimitResult, toRateLimitResult } from './rate-limit.js';

type ThrottlerStorageRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * The throttler's storage on our buckets in PostgreSQL (D21). A throttler limit of `limit` per `ttl` milliseconds is a
 * token bucket of `limit` that refills within `ttl`. It limits the admin port, the callback port and every route with
 * `@Throttle`. API keys on the partner port are charged separately, before the body is read.
 */
@Injectable()
export class GcraThrottlerStorage implements ThrottlerStorage {
  constructor(private readonly repository: ApiKeyAuthRepository) {}

  /** Adapts `charge` to the throttler's interface. */
  async increment(key: string, ttl: number, limit: number): Promise<ThrottlerStorageRecord> {
    const { allowed, headers } = await this.charge(key, ttl, limit);
    const retryAfterS = Number(headers['retry-after'] ?? 0);
    return {
      totalHits: limit - Number(headers['x-ratelimit-remaining']) + (allowed ? 0 : 1),
      timeToExpire: Math.max(1, retryAfterS),
      isBlocked: !allowed,
      timeToBlockExpire: retryAfterS,
    };
  }

  /** Takes one token from the bucket of `key` and returns the rate-limit headers. */
  async charge(key: string, ttl: number, limit: number): Promise<RateLimitResult> {
    const shape = { burst: limit, microsecondsPerToken: Math.max(1, Math.round((ttl * 1_000) / limit)) };
    const buckets = await this.repository.charge(new Map([[key, 1]]), shape);
    return toRateLimitResult(buckets.get(key)!, 0, shape);
  }
}

/** Converts a bucket of `burst` that refills at `perMinute` to the throttler's terms. */
export function toThrottlerLimit(rate: { perMinute: number; burst: number }): { limit: number; ttl: number } {
  return { limit: rate.burst, ttl: (rate.burst / rate.perMinute) * 60_000 };
}
