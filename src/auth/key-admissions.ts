import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { ApiKeyAuthRepository, type KnownKey, type PresentedKey } from './admissions.repository.js';
import {
  type BucketState,
  judge,
  type RateLimitShape,
  type RateLimitResult,
  toRateLimitShape,
} from './rate-verdict.js';
import { RedisBuckets } from './redis-buckets.js';

/** A valid key and what its bucket said; `rate` is null only when nothing was charged. */
export interface AuthenticatedKey {
  readonly key: KnownKey;
  readonly rate: RateLimitResult;
}

interface Waiter {
  resolve(admission: AuthenticatedKey | null): void;
  reject(error: unknown): void;
}

interface Presented {
  readonly hash: Buffer;
  readonly address: string | null;
  readonly waiters: Waiter[];
}

/** Distinct keys of one statement at most; what comes on top waits for the next one. */
const MAX_BATCH = 500;

/**
 * Checks keys and charges their rate limit, all calls of one event-loop turn in one statement (D13, D21). One
 * statement is under way at a time: measured, a second one gains little and costs much on a hot key.
 */
@Injectable()
export class ApiKeyAuthenticator {
  private readonly shape: RateLimitShape;
  private pending = new Map<string, Presented>();
  private armed = false;
  private busy = false;

  constructor(
    private readonly repository: ApiKeyAuthRepository,
    private readonly redis: RedisBuckets,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'rateLimit'>,
  ) {
    this.shape = toRateLimitShape(config.rateLimit);
  }

  /** The admission of the key with this SHA-256, or null for a key that is unknown, revoked or expired. */
  admit(hash: Buffer, address: string | null): Promise<AuthenticatedKey | null> {
    return new Promise((resolve, reject) => {
      const id = hash.toString('latin1') + (address ?? '');
      const presented = this.pending.get(id);
      if (presented) presented.waiters.push({ resolve, reject });
      else this.pending.set(id, { hash, address, waiters: [{ resolve, reject }] });
      this.arm();
    });
  }

  private arm(): void {
    if (this.armed || this.busy || this.pending.size === 0) return;
    this.armed = true;
    setImmediate(() => {
      this.armed = false;
      void this.flush();
    });
  }

  private async flush(): Promise<void> {
    const batch = this.takeBatch();
    this.busy = true;
    try {
      await this.decide(batch);
    } catch (error) {
      for (const { waiters } of batch) for (const waiter of waiters) waiter.reject(error);
    } finally {
      this.busy = false;
      this.arm();
    }
  }

  private takeBatch(): Presented[] {
    if (this.pending.size <= MAX_BATCH) {
      const all = [...this.pending.values()];
      this.pending = new Map();
      return all;
    }
    const batch: Presented[] = [];
    for (const [id, presented] of this.pending) {
      if (batch.length === MAX_BATCH) break;
      batch.push(presented);
      this.pending.delete(id);
    }
    return batch;
  }

  private async decide(batch: readonly Presented[]): Promise<void> {
    const { known, buckets } = await this.checkAndCharge(
      batch.map(({ hash, address, waiters }) => ({ hash, address, calls: waiters.length })),
    );
    const keyAt = new Map(known.map((key) => [key.index, key]));
    const served = new Map<string, number>();
    batch.forEach((presented, index) => {
      const key = keyAt.get(index);
      if (!key) return presented.waiters.forEach((waiter) => waiter.resolve(null));
      const bucket = buckets.get(key.keyId)!;
      const charged = key.partnerActive && key.addressAllowed;
      for (const waiter of presented.waiters) {
        const nth = served.get(key.keyId) ?? 0;
        waiter.resolve({ key, rate: judge(bucket, charged ? nth : -1, this.shape) });
        if (charged) served.set(key.keyId, nth + 1);
      }
    });
  }

  private async checkAndCharge(
    keys: readonly PresentedKey[],
  ): Promise<{ known: KnownKey[]; buckets: Map<string, BucketState> }> {
    if (!this.redis.available) return this.repository.checkAndCharge(keys, this.shape);
    const known = await this.repository.check(keys, this.shape);
    const calls = new Map<string, number>();
    for (const key of known) {
      const charged = key.partnerActive && key.addressAllowed ? keys[key.index]!.calls : 0;
      calls.set(key.keyId, (calls.get(key.keyId) ?? 0) + charged);
    }
    if (calls.size === 0) return { known, buckets: new Map() };
    // D21: when Redis fails the limiter neither opens nor answers 500; PostgreSQL's buckets take over.
    const buckets =
      (await this.redis.charge(calls, this.shape)) ?? (await this.repository.charge(calls, this.shape));
    return { known, buckets };
  }
}
