import { boundedCache } from './bounded-cache.js';

export interface AllowanceOptions {
  /** How much a key may spend at once. */
  readonly burst: number;
  readonly perSecond: number;
}

const KEYS_KEPT = 20_000;

/** Token buckets of this process, one for each key. A key that nobody has named for long may begin anew. */
export class Allowances {
  private readonly spent = boundedCache<{ amount: number; at: number }>(KEYS_KEPT);

  constructor(
    private readonly options: AllowanceOptions,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** What the key may spend now; negative when it has spent more than it had. */
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
