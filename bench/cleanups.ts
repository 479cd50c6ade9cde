/** What a measurement has started, ended in reverse order whatever happens. */
export class Cleanups {
  private readonly actions: (() => Promise<void>)[] = [];
  private running: Promise<void> | null = null;

  /** Registers `started.stop` and gives `started` back. */
  stopping<T extends { stop(): Promise<void> }>(started: T): T {
    this.actions.push(() => started.stop());
    return started;
  }

  /** A second caller waits for the first: Ctrl-C comes here, and so does the failure that it causes. */
  run(): Promise<void> {
    this.running ??= this.runAll().finally(() => (this.running = null));
    return this.running;
  }

  private async runAll(): Promise<void> {
    while (this.actions.length > 0) {
      await this.actions.pop()!().catch((error: unknown) => {
        console.error(`not stopped cleanly: ${(error as Error).message}`);
      });
    }
  }
}
