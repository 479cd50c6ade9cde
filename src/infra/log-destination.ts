import { type DestinationStream, type Logger, pino } from 'pino';
import { Counter, type Registry } from 'prom-client';

/** Maximum bytes of waiting lines, about a few seconds of a busy process; further lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1_024 * 1_024;
/** Lines are combined, because a system call per line is too expensive. */
const WRITE_AT_BYTES = 4_096;
/** Maximum wait for a stuck reader at the end of the process. */
const CLOSE_LIMIT_MS = 300;
const REPORT_EVERY_MS = 5_000;

export interface LogDestinationOptions {
  /** A file descriptor or path; default stdout. */
  readonly dest?: number | string;
  readonly maxWaitingBytes?: number;
}

/**
 * Destination of log lines. A slow or hanging reader of stdout costs lines and nothing else: waiting lines do not fill
 * the memory, and shutdown does not wait for the reader (D43).
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
    // Reading this property makes Node set the pipe to non-blocking. Otherwise a write to a full pipe would block a
    // thread, and with it the exit of the process.
    if (dest === 1) void process.stdout;
    this.stream = pino.destination({
      dest,
      sync: false,
      minLength: WRITE_AT_BYTES,
      maxLength: maxWaitingBytes,
      retryEAGAIN: () => performance.now() < this.writesUntilMs,
    });
    this.stream.on('drop', () => this.drop());
    // Ignores errors such as a full disk: lines stay buffered until there are too many.
    this.stream.on('error', () => undefined);
    this.endInTime();
  }

  write(line: string): void {
    if (!this.isClosed) this.stream.write(line);
  }

  /** Starts writing the waiting lines and returns at once. */
  flush(): void {
    if (!this.isClosed) this.stream.flush();
  }

  /** Number of dropped lines since the start. */
  get droppedLines(): number {
    return this.dropped;
  }

  /** Counts dropped lines in `log_lines_dropped_total`, and logs their number once there is room again. */
  reportTo(logger: Logger, registry: Registry): void {
    this.counter = new Counter({
      name: 'log_lines_dropped_total',
      help: 'Log lines that this process dropped because the reader was too slow.',
      registers: [registry],
    });
    this.reports = setInterval(() => this.report(logger), REPORT_EVERY_MS).unref();
  }

  /** Writes the waiting lines within a short limit, for the end of the process; later lines are not buffered. */
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
    logger.warn({ event: 'log.dropped', lines }, 'log lines dropped: the reader is too slow');
    // Unless this line was dropped too.
    if (this.dropped === dropped) this.reported = dropped;
  }

  private drop(): void {
    this.dropped++;
    this.counter?.inc();
  }

  /** pino writes waiting lines when the process exits, and would retry forever. */
  private endInTime(): void {
    const flushSync = this.stream.flushSync.bind(this.stream);
    this.stream.flushSync = () => {
      this.isClosed = true;
      this.writesUntilMs = Math.min(this.writesUntilMs, performance.now() + CLOSE_LIMIT_MS);
      try {
        flushSync();
      } catch {
        // The reader is stuck: the lines are lost.
      }
    };
  }
}
