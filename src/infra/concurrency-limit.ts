/** A bound on what runs at once; the rest waits, first come, first served. */
export class ConcurrencyLimit {
  private readonly waiting: (() => void)[] = [];

  /** @param free how much may run at once */
  constructor(private free: number) {}

  /** Runs `work` when there is room for it. @throws what it throws */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    }
  }
}
