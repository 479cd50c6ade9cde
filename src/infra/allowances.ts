import { boundedCache } from './bounded-cache.js';

export interface AllowanceOptions {
  /** Maximum that a key may spend at once. */
  readonly burst: number;
  readonly perSecond: number;
}

const KEYS_KEPT = 20_000;

/**
 * Token buckets in memory, one per key. The least recently used key is evicted first, and later starts with a full
 * bucket.
 */
export class Allowances {
  private readonly spent = boundedCache<{ amount: number; at: number }>(KEYS_KEPT);

  constructor(
    private readonly options: AllowanceOptions,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** The key's balance; negative after overspending. */
  left(key: string): number {
    return this.options.burst - this.spentBy(key);
  }

  /** Milliseconds until the key has `amount` again; 0 when it has. */
  waitMs(key: string, amount: number): number {
    return Math.max(0, ((amount - this.left(key)) / this.options.perSecond) * 1_000);
  }

  /** Takes `amount`, even if the key has less. */
  spend(key: string, amount: number): void {
    this.spent.set(key, { amount: this.spentBy(key) + amount, at: this.nowMs() });
  }

  private spentBy(key: string): number {
    const entry = this.spent.get(key);
    if (!entry) return 0;
    return Math.max(0, entry.amount - ((this.nowMs() - entry.at) * this.options.perSecond) / 1_000);
  }
}
