import { endsWithin } from '../../common/time-limit.js';
import { AppError } from '../../common/errors/index.js';

/** How long a duplicate waits for the first call (D18). */
export const WAIT_LIMIT_MS = 5_000;

export const inProgress = (): AppError =>
  new AppError('idempotency_in_progress', { headers: { 'Retry-After': '1' } });

/**
 * Runs this process's calls with the same key one at a time. Otherwise every duplicate would hold a pooled connection
 * while it waits for the row lock in PostgreSQL.
 */
export class KeyedMutex {
  private readonly tails = new Map<string, Promise<void>>();

  constructor(private readonly waitLimitMs: number = WAIT_LIMIT_MS) {}

  /**
   * Runs `work` after all earlier calls with this key have ended, and passes it the milliseconds that it waited.
   * @throws AppError `idempotency_in_progress` when the key is not free within the wait limit
   */
  async runExclusive<T>(key: string, work: (waitedMs: number) => Promise<T>): Promise<T> {
    const before = this.tails.get(key);
    let finish!: () => void;
    const own = new Promise<void>((resolve) => (finish = resolve));
    // The next call waits for all calls before it, even if this one gives up first.
    const tail = before ? before.then(() => own) : own;
    this.tails.set(key, tail);
    void tail.then(() => {
      if (this.tails.get(key) === tail) this.tails.delete(key);
    });
    try {
      const since = performance.now();
      if (before && !(await endsWithin(before, this.waitLimitMs))) throw inProgress();
      return await work(before ? performance.now() - since : 0);
    } finally {
      finish();
    }
  }
}
