import { Injectable } from '@nestjs/common';

/** Tells the poller of this process that a hint waits. Best effort: the sweeps of all workers find it too. */
@Injectable()
export class PollNotifier {
  private listener: ((provider: string) => void) | null = null;

  /** One listener: the poller, where this process has it. */
  onNotify(listener: (provider: string) => void): void {
    this.listener = listener;
  }

  notify(provider: string): void {
    this.listener?.(provider);
  }
}
