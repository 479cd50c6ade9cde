import { type DestinationStream, type Logger, pino } from 'pino';
import { Counter, type Registry } from 'prom-client';

/** Lines that wait for their reader. What a busy process says in a few seconds; more is dropped, not kept. */
const MAX_WAITING_BYTES = 4 * 1_024 * 1_024;
/** A line for each call must not cost a system call for each. */
const WRITE_AT_BYTES = 4_096;
/** How long an end waits for a reader that takes nothing. */
const CLOSE_LIMIT_MS = 300;
const REPORT_EVERY_MS = 5_000;

export interface LogDestinationOptions {
  /** A descriptor, or the path of a file; stdout unless said. */
  readonly dest?: number | string;
  readonly maxWaitingBytes?: number;
}

/**
 * Where log lines go. A reader of stdout that is slow or hangs costs lines and nothing else: not our memory, which the
 * lines that wait for it would fill, and not our end, which would wait for it for ever (D43).
 */
export class LogDestination implements DestinationStream {
  private readonly stream: ReturnType<typeof pino.destination>;
  private writesUntilMs = Infinity;
  private dropped = 0;
  private reported = 0;
  private isClosed = false;
  private counter: Counter | null = null;
  private reports: NodeJS.Timeout | undefined;

  constructor({ dest = 1, maxWaitingBytes = MAX_WAITING_BYTES }: LogDestinationOptions = {}) {
    // Asked for once, Node makes a pipe non-blocking. Otherwise a write to a full one holds a thread, and with it exit.
    if (dest === 1) void process.stdout;
    this.stream = pino.destination({
      dest,
      sync: false,
      minLength: WRITE_AT_BYTES,
      maxLength: maxWaitingBytes,
      retryEAGAIN: () => performance.now() < this.writesUntilMs,
    });
    this.stream.on('drop', () => this.drop());
    // A full disk, say: what was to be written stays, until there is too much of it.
    this.stream.on('error', () => undefined);
    this.endInTime();
  }

  write(line: string): void {
    if (!this.isClosed) this.stream.write(line);
  }

  /** Writes what waits, without waiting for it. */
  flush(): void {
    if (!this.isClosed) this.stream.flush();
  }

  /** Lines that no reader took in time, since the start. */
  get droppedLines(): number {
    return this.dropped;
  }

  /** Counts dropped lines in `log_lines_dropped_total`, and says how many there were once there is room again. */
  reportTo(logger: Logger, registry: Registry): void {
    this.counter = new Counter({
      name: 'log_lines_dropped_total',
      help: 'Log lines of this process that were dropped because nobody read them in time.',
      registers: [registry],
    });
    this.reports = setInterval(() => this.report(logger), REPORT_EVERY_MS).unref();
  }

  /** Writes what waits, for a moment at most. For the end of the process: later lines wait no longer. */
  async close(): Promise<void> {
    clearInterval(this.reports);
    if (this.isClosed) return;
    this.writesUntilMs = performance.now() + CLOSE_LIMIT_MS;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, CLOSE_LIMIT_MS);
      this.stream.flush(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private report(logger: Logger): void {
    const { dropped } = this;
    const lines = dropped - this.reported;
    if (lines === 0) return;
    logger.warn({ event: 'log.dropped', lines }, 'nobody read the log in time');
    // Unless this line was dropped, too.
    if (this.dropped === dropped) this.reported = dropped;
  }

  private drop(): void {
    this.dropped++;
    this.counter?.inc();
  }

  /** pino writes what waits when the process exits, and would try again for ever. */
  private endInTime(): void {
    const flushSync = this.stream.flushSync.bind(this.stream);
    this.stream.flushSync = () => {
      this.isClosed = true;
      this.writesUntilMs = Math.min(this.writesUntilMs, performance.now() + CLOSE_LIMIT_MS);
      try {
        flushSync();
      } catch {
        // Nobody reads: the lines are lost.
      }
    };
  }
}
