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

/** A valid key, and what its rate limit says to this call. */
export interface AuthenticatedKey {
  readonly key: KnownKey;
  readonly rate: RateLimitResult;
}

interface KeyCheck {
  readonly hash: Buffer;
  readonly address: string | null;
  resolve(found: AuthenticatedKey | null): void;
  reject(error: unknown): void;
}

/** Calls of one statement at most; what comes on top waits for the next one. */
const MAX_BATCH = 2_000;

/**
 * Checks keys and charges their rate limit, all calls of one event-loop turn in one statement (D13, D21). One
 * statement is under way at a time: measured, a second one gains little and costs much on a hot key.
 */
@Injectable()
export class ApiKeyAuthenticator {
  private readonly shape: RateLimitShape;
  private readonly batcher: Batcher<KeyCheck>;

  constructor(
    private readonly repository: ApiKeyAuthRepository,
    private readonly redis: RedisBuckets,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'rateLimit'>,
    @Inject(METRICS) metrics: Registry = new Registry(),
  ) {
    this.shape = toRateLimitShape(config.rateLimit);
    this.batcher = new Batcher<KeyCheck>({
      maxItems: MAX_BATCH,
      gather: 'turn',
      handle: (checks) => this.checkAll(checks),
      failed: (check, error) => check.reject(error),
      // A deadlock, too: what is repeated in parts has other locks.
      isItemFault: (error) => mayBeOfOneRow(error) || isTransientConflict(error),
      sized: observeBatches(metrics, 'key_checks'),
    });
  }

  /** The key with this SHA-256, charged for one call; null for one that is unknown, revoked or expired. */
  authenticate(hash: Buffer, address: string | null): Promise<AuthenticatedKey | null> {
    return new Promise((resolve, reject) => this.batcher.add({ hash, address, resolve, reject }));
  }

  private async checkAll(checks: readonly KeyCheck[]): Promise<void> {
    const presented = groupByKey(checks);
    const { known, buckets } = await this.checkAndCharge(
      presented.map(([{ hash, address }, ...others]) => ({ hash, address, calls: 1 + others.length })),
    );
    const keyAt = new Map(known.map((key) => [key.index, key]));
    const served = new Map<string, number>();
    presented.forEach((group, index) => {
      const key = keyAt.get(index);
      if (!key) return group.forEach((check) => check.resolve(null));
      const bucket = buckets.get(key.keyId)!;
      const before = served.get(key.keyId) ?? 0;
      group.forEach((check, nth) =>
        check.resolve({ key, rate: toRateLimitResult(bucket, before + nth, this.shape) }),
      );
      served.set(key.keyId, before + group.length);
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
    // D21: when Redis fails the limiter neither opens nor answers 500; PostgreSQL's buckets take over.
    const buckets =
      (await this.redis.charge(calls, this.shape)) ?? (await this.repository.charge(calls, this.shape));
    return { known, buckets };
  }
}

type KeyChecks = readonly [KeyCheck, ...KeyCheck[]];

/** The checks of one key from one address together, in the order in which the first of each came. */
function groupByKey(checks: readonly KeyCheck[]): KeyChecks[] {
  const groups = new Map<string, [KeyCheck, ...KeyCheck[]]>();
  for (const check of checks) {
    const id = check.hash.toString('latin1') + (check.address ?? '');
    const group = groups.get(id);
    if (group) group.push(check);
    else groups.set(id, [check]);
  }
  return [...groups.values()];
}
