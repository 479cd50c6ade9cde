import type { Logger } from 'pino';
import type { LastUsedRepository } from '../api-keys/index.js';
import { Batcher } from '../infra/batcher.js';
import type { FinishedCall } from '../infra/http/edge/index.js';

const MINUTE_MS = 60_000;
const MAX_KEYS = 1_000;

/** Writes `last_used_at` of the keys that call: each at most once a minute and process (D38). */
export class LastUsedThrottle {
  private readonly writtenAtMs = new Map<string, number>();
  private sweepAtMs = 0;
  private readonly due: Batcher<string>;

  constructor(keys: LastUsedRepository, logger: Logger) {
    this.due = new Batcher<string>({
      maxItems: MAX_KEYS,
      gather: 'microtask',
      handle: (keyIds) => keys.touch(keyIds),
      failed: (keyId, error) => {
        // The next call with this key is due again.
        this.writtenAtMs.delete(keyId);
        logger.warn(
          { event: 'call_log.touch_failed', keyId, err: error },
          'last_used_at is written with the next call',
        );
      },
    });
  }

  /** `nowMs` never runs backwards. */
  touch(calls: readonly FinishedCall[], nowMs: number): void {
    this.sweep(nowMs);
    for (const { keyId } of calls) {
      if (keyId === null || this.writtenAtMs.has(keyId)) continue;
      this.writtenAtMs.set(keyId, nowMs);
      this.due.add(keyId);
    }
  }

  close(): Promise<void> {
    return this.due.drain();
  }

  private sweep(nowMs: number): void {
    if (nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + 1_000;
    for (const [keyId, atMs] of this.writtenAtMs)
      if (nowMs - atMs >= MINUTE_MS) this.writtenAtMs.delete(keyId);
  }
}
