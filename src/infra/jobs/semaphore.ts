/** Lets at most `permits` pieces of work run at a time, first come, first served. */
export class Semaphore {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly permits: number) {}

  /** @throws what `work` throws; its permit is given on all the same */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= this.permits) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running++;
    try {
      return await work();
    } finally {
      // The permit passes on without being given back, so that nobody overtakes.
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }
}
