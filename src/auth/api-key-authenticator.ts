import { Inject, Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { Batcher } from '../infra/batcher.js';
import { isTransientConflict, mayBeOfOneRow } from '../infra/database/index.js';
import { METRICS, observeBatches } from '../infra/metrics.js';
import { ApiKeyAuthRepository, type KnownKey, type PresentedKey } from './api-key-auth.repository.js';
import {
  type BucketState,
  type RateLimitResult,
  type RateLimitShape,
  toRateLimitResult,
  toRateLimitShape,
} from './rate-limit.js';
import { RedisBuckets } from './redis-buckets.js';

/** A valid key with the rate-limit result of this call. */
export interface AuthenticatedKey {
  readonly key: KnownKey;
  readonly rate: RateLimitResult;
}

interface KeyCheck {
  readonly hash: Buffer;
  readonly address: string | null;
}

/** Maximum calls per statement; further ones wait for the next. */
const MAX_BATCH = 2_000;

/**
 * Checks keys and charges their rate limit: all calls of one event-loop turn share a statement (D13, D21). Only one
 * statement runs at a time, because a second one gains little and costs much on a hot key.
 */
@Injectable()
export class ApiKeyAuthenticator {
  private readonly shape: RateLimitShape;
  private readonly batcher: Batcher<KeyCheck, AuthenticatedKey | null>;

  constructor(
    private readonly repository: ApiKeyAuthRepository,
    private readonly redis: RedisBuckets,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'rateLimit'>,
    @Inject(METRICS) metrics: Registry = new Registry(),
  ) {
    this.shape = toRateLimitShape(config.rateLimit);
    this.batcher = new Batcher({
      maxItems: MAX_BATCH,
      gather: 'turn',
      handle: (checks) => this.checkAll(checks),
      // Includes deadlocks, because a batch that is split takes other locks.
      isItemFault: (error) => mayBeOfOneRow(error) || isTransientConflict(error),
      sized: observeBatches(metrics, 'key_checks'),
    });
  }

  /** The key with this SHA-256, charged for one call; null for an unknown, revoked or expired key. */
  authenticate(hash: Buffer, address: string | null): Promise<AuthenticatedKey | null> {
    return this.batcher.add({ hash, address });
  }

  private async checkAll(checks: readonly KeyCheck[]): Promise<(AuthenticatedKey | null)[]> {
    const { presented, indexes } = groupByKey(checks);
    const { known, buckets } = await this.checkAndCharge(presented);
    const keyAt = new Map(known.map((key) => [key.index, key]));
    const served = new Map<string, number>();
    return indexes.map((index) => {
      const key = keyAt.get(index);
      if (!key) return null;
      const before = served.get(key.keyId) ?? 0;
      served.set(key.keyId, before + 1);
      return { key, rate: toRateLimitResult(buckets.get(key.keyId)!, before, this.shape) };
    });
  }

  private async checkAndCharge(
    keys: readonly PresentedKey[],
  ): Promise<{ known: KnownKey[]; buckets: Map<string, BucketState> }> {
    if (!this.redis.available) return this.repository.checkAndCharge(keys, this.shape);
    const known = await this.repository.check(keys, this.shape);
    const calls = new Map<string, number>();
    for (const { keyId, index } of known) calls.set(keyId, (calls.get(keyId) ?? 0) + keys[index]!.calls);
    if (calls.size === 0) return { known, buckets: new Map() };
    // When Redis fails, the limiter neither opens nor returns 500; PostgreSQL's buckets take over.
    const buckets =
      (await this.redis.charge(calls, this.shape)) ?? (await this.repository.charge(calls, this.shape));
    return { known, buckets };
  }
}

interface KeyGroups {
  readonly presented: readonly PresentedKey[];
  /** For each check, the index of its key in `presented`. */
  readonly indexes: readonly number[];
}

/** Groups the checks by key and address, in their order of arrival. */
function groupByKey(checks: readonly KeyCheck[]): KeyGroups {
  const presented: (PresentedKey & { calls: number })[] = [];
  const indexOf = new Map<string, number>();
  const indexes = checks.map(({ hash, address }) => {
    const id = hash.toString('latin1') + (address ?? '');
    const known = indexOf.get(id);
    if (known !== undefined) {
      presented[known]!.calls++;
      return known;
    }
    indexOf.set(id, presented.length);
    return presented.push({ hash, address, calls: 1 }) - 1;
  });
  return { presented, indexes };
}
