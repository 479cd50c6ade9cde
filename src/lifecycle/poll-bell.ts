import { Injectable } from '@nestjs/common';

/** Tells the poller of this process that a hint waits. Best effort: the sweeps of all workers find it too. */
@Injectable()
export class PollBell {
  private listener: ((provider: string) => void) | null = null;

  /** One listener: the poller, where this process has it. */
  onRing(listener: (provider: string) => void): void {
    this.listener = listener;
  }

  ring(provider: string): void {
    this.listener?.(provider);
  }
}
