/** What a measurement has started, ended in reverse order whatever happens. */
export class Cleanups {
  private readonly actions: (() => Promise<void>)[] = [];

  /** Registers `started.stop` and gives `started` back. */
  stopping<T extends { stop(): Promise<void> }>(started: T): T {
    this.actions.push(() => started.stop());
    return started;
  }

  async run(): Promise<void> {
    while (this.actions.length > 0) await this.actions.pop()!();
  }
}
