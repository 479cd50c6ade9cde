import type { Logger } from 'pino';
import type { FinishedCall } from '../infra/http/edge/index.js';
import type { CallRowsRepository } from './call-rows.repository.js';
import { SuppressedCounter } from './minute-tally.js';

/** Rows that wait at most; beyond them the oldest are given up, so that an outage does not fill our memory. */
export const MAX_WAITING_ROWS = 50_000;
/** Rows of one statement at most, when more than one flush has piled up. */
const MAX_BATCH_ROWS = 2_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How long a stop goes on trying. */
const CLOSE_LIMIT_MS = 2_000;
const LAST_STATEMENT_MS = 500;

/** Writes rows in the background, one statement at a time; failures are retried and keep the rows (D38). */
export class CallRowWriter {
  private waiting: FinishedCall[] = [];
  private running: Promise<void> | null = null;
  private failures = 0;
  private closeByMs = Infinity;
  private endPause: (() => void) | null = null;
  private readonly dropped: SuppressedCounter;

  constructor(
    private readonly rows: Pick<CallRowsRepository, 'insert' | 'insertMissing'>,
    private readonly logger: Logger,
  ) {
    this.dropped = new SuppressedCounter(logger, 'call_log.dropped', 'call log rows were given up');
  }

  add(calls: readonly FinishedCall[]): void {
    this.waiting = this.waiting.length === 0 ? [...calls] : this.waiting.concat(calls);
    this.trim();
    this.start();
  }

  /** Writes what waits, for at most 2 s, then gives up the rest and says how much it was. */
  async close(): Promise<void> {
    this.closeByMs = performance.now() + CLOSE_LIMIT_MS;
    this.endPause?.();
    this.start();
    let timer: NodeJS.Timeout | undefined;
    // A statement that hangs must not hang the stop.
    const limit = new Promise<void>(
      (resolve) => (timer = setTimeout(resolve, CLOSE_LIMIT_MS + LAST_STATEMENT_MS)),
    );
    await Promise.race([this.running, limit]);
    clearTimeout(timer);
    this.giveUp();
    this.dropped.report();
  }

  private start(): void {
    if (this.running || this.waiting.length === 0) return;
    this.running = this.run();
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_BATCH_ROWS);
      if (await this.write(batch)) continue;
      this.waiting = batch.concat(this.waiting);
      this.trim();
      if (performance.now() >= this.closeByMs) this.giveUp();
      else await this.pause();
    }
    this.running = null;
  }

  private async write(batch: readonly FinishedCall[]): Promise<boolean> {
    try {
      await (this.failures === 0 ? this.rows.insert(batch) : this.rows.insertMissing(batch));
      this.failures = 0;
      return true;
    } catch (error) {
      this.failures++;
      const details = {
        event: 'call_log.write_failed',
        rows: batch.length,
        failures: this.failures,
        err: error,
      };
      this.logger.warn(details, 'call log rows are kept and written again');
      return false;
    }
  }

  private pause(): Promise<void> {
    const closing = this.closeByMs < Infinity;
    const ms = closing ? FIRST_PAUSE_MS : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private trim(): void {
    const excess = this.waiting.length - MAX_WAITING_ROWS;
    if (excess <= 0) return;
    this.waiting.splice(0, excess);
    this.dropped.add(excess);
  }

  private giveUp(): void {
    this.dropped.add(this.waiting.length);
    this.waiting = [];
  }
}
