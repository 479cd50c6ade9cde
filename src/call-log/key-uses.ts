import type { FinishedCall } from '../infra/http/edge/index.js';

const MINUTE_MS = 60_000;

/** Which keys' `last_used_at` this process should write: each at most once a minute (D38). */
export class LastUsedThrottle {
  private readonly writtenAtMs = new Map<string, number>();
  private sweepAtMs = 0;

  /** The keys of these calls that are due; they count as written until `forget`. */
  takeDue(calls: readonly FinishedCall[], nowMs: number): string[] {
    this.sweep(nowMs);
    const due: string[] = [];
    for (const { keyId } of calls) {
      if (keyId === null || this.writtenAtMs.has(keyId)) continue;
      this.writtenAtMs.set(keyId, nowMs);
      due.push(keyId);
    }
    return due;
  }

  /** The write failed: the next call of these keys is due again. */
  forget(keyIds: readonly string[]): void {
    for (const keyId of keyIds) this.writtenAtMs.delete(keyId);
  }

  private sweep(nowMs: number): void {
    if (nowMs < this.sweepAtMs) return;
    this.sweepAtMs = nowMs + 1_000;
    for (const [keyId, atMs] of this.writtenAtMs)
      if (nowMs - atMs >= MINUTE_MS) this.writtenAtMs.delete(keyId);
  }
}
