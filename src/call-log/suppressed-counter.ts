import type { Logger } from 'pino';

const REPORT_AFTER_MS = 60_000;

/** Counts what is not written, and says so in one line a minute. */
export class SuppressedCounter {
  private count = 0;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly logger: Logger,
    private readonly event: string,
    private readonly message: string,
  ) {}

  add(count: number): void {
    if (count === 0) return;
    this.count += count;
    this.timer ??= setTimeout(() => this.report(), REPORT_AFTER_MS).unref();
  }

  /** Reports now, if there is anything. */
  report(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    if (this.count > 0) this.logger.warn({ event: this.event, calls: this.count }, this.message);
    this.count = 0;
  }
}
