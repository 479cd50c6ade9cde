/**
 * Lets a few claims run at a time, in order. Without it, a thousand endpoints that become due together would each
 * wait for a connection of the pool, and the heartbeat and the outcomes with them.
 */
export class ClaimTurns {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= this.most) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running++;
    try {
      return await work();
    } finally {
      // The turn passes on without being given back, so that nobody overtakes.
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }
}
