import { Injectable } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { ApiKeyAuthRepository } from './api-key-auth.repository.js';
import { type RateLimitResult, toRateLimitResult } from './rate-limit.js';

type ThrottlerStorageRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * The throttler's storage on our buckets in PostgreSQL (D21). Its `limit` in `ttl` milliseconds is a token bucket of
 * `limit` that is full again after `ttl`: it limits the admin port, the callback port and every `@Throttle`d route. The
 * edge of the partner port charges API keys by itself, before the body is read.
 */
@Injectable()
export class GcraThrottlerStorage implements ThrottlerStorage {
  constructor(private readonly repository: ApiKeyAuthRepository) {}

  /** The throttler's interface over `charge`. */
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

  /** Takes one token of `key`; the headers are those of D21. */
  async charge(key: string, ttl: number, limit: number): Promise<RateLimitResult> {
    const shape = { burst: limit, microsecondsPerToken: Math.max(1, Math.round((ttl * 1_000) / limit)) };
    const buckets = await this.repository.charge(new Map([[key, 1]]), shape);
    return toRateLimitResult(buckets.get(key)!, 0, shape);
  }
}

/** A bucket of `burst` that refills at `perMinute`, in the throttler's terms. */
export function toThrottlerLimit(rate: { perMinute: number; burst: number }): { limit: number; ttl: number } {
  return { limit: rate.burst, ttl: (rate.burst / rate.perMinute) * 60_000 };
}
