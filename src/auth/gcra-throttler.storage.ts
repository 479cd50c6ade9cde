import { Inject, Injectable } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { ApiKeyAuthRepository } from './api-key-auth.repository.js';
import { toRateLimitResult, type RateLimitShape, toRateLimitShape } from './rate-limit.js';

type ThrottlerStorageRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

/**
 * The throttler's storage on our buckets (D21): a token bucket for every tracker, whatever window the caller names.
 * The edge charges API keys by `ApiKeyAuthenticator`; this serves guards of other trackers.
 */
@Injectable()
export class GcraThrottlerStorage implements ThrottlerStorage {
  private readonly shape: RateLimitShape;

  constructor(
    private readonly repository: ApiKeyAuthRepository,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'rateLimit'>,
  ) {
    this.shape = toRateLimitShape(config.rateLimit);
  }

  async increment(key: string): Promise<ThrottlerStorageRecord> {
    const buckets = await this.repository.charge(new Map([[key, 1]]), this.shape);
    const { allowed, headers } = toRateLimitResult(buckets.get(key)!, 0, this.shape);
    const retryAfterS = Number(headers['retry-after'] ?? 0);
    return {
      totalHits: this.shape.burst - Number(headers['x-ratelimit-remaining']) + (allowed ? 0 : 1),
      timeToExpire: Math.max(1, retryAfterS),
      isBlocked: !allowed,
      timeToBlockExpire: retryAfterS,
    };
  }
}
