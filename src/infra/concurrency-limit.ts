/** Limits concurrency; further work waits in order of arrival. */
export class ConcurrencyLimit {
  private readonly waiting: (() => void)[] = [];

  /** @param free maximum concurrency */
  constructor(private free: number) {}

  /** Runs `work` when a slot is free. @throws any error of `work` */
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
