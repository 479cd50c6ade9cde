import type { Logger } from 'pino';
import { endsWithin } from '../common/ends-within.js';
import { Batcher, ItemDropped } from '../infra/batcher.js';
import { mayBeOfOneRow, sqlState } from '../infra/database/index.js';
import type { CallRow, CallRowsRepository } from './call-log.repository.js';

/** Rows that wait at most; beyond them the oldest are given up, so that an outage does not fill our memory. */
const MAX_WAITING_ROWS = 50_000;
/** Rows of one statement at most, when more than one flush has piled up. */
const MAX_BATCH_ROWS = 2_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How long a stop goes on trying. */
const CLOSE_LIMIT_MS = 2_000;
const LAST_STATEMENT_MS = 500;

/** Writes rows in the background, one statement at a time; failures are retried and keep the rows (D38). */
export class CallRowWriter {
  private readonly batcher: Batcher<CallRow>;
  private readonly dropped: SuppressedCounter;
  private closeByMs = Infinity;

  constructor(
    rows: Pick<CallRowsRepository, 'insert' | 'insertMissing'>,
    private readonly logger: Logger,
    sized?: (rows: number) => void,
  ) {
    this.dropped = new SuppressedCounter(logger, 'call_log.dropped', 'call log rows were given up');
    this.batcher = new Batcher<CallRow>({
      maxItems: MAX_BATCH_ROWS,
      gather: 'microtask',
      maxWaiting: MAX_WAITING_ROWS,
      handle: (calls, failures) => (failures === 0 ? rows.insert(calls) : rows.insertMissing(calls)),
      isItemFault: isRowFault,
      retryAfterMs: (failures, error, calls) => this.pauseAfter(failures, error, calls),
      failed: (calls, error) => this.giveUp(calls, error),
      ...(sized ? { sized } : {}),
    });
  }

  add(call: CallRow): void {
    void this.batcher.add(call);
  }

  /** Writes what waits, for at most 2 s, then gives up the rest and says how much it was. */
  async close(): Promise<void> {
    this.closeByMs = performance.now() + CLOSE_LIMIT_MS;
    // A statement that hangs must not hang the stop.
    await endsWithin(this.batcher.drain(), CLOSE_LIMIT_MS + LAST_STATEMENT_MS);
    this.batcher.discard();
    this.dropped.report();
  }

  /** Null for a row that PostgreSQL refuses, and once a stop has waited long enough. */
  private pauseAfter(failures: number, error: unknown, calls: readonly CallRow[]): number | null {
    if (isRowFault(error) || performance.now() >= this.closeByMs) return null;
    this.logger.warn(
      { event: 'call_log.write_failed', rows: calls.length, failures, err: error },
      'call log rows are kept and written again',
    );
    if (this.closeByMs < Infinity) return FIRST_PAUSE_MS;
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
  }

  private giveUp(calls: readonly CallRow[], error: unknown): void {
    this.dropped.add(calls.length);
    if (error instanceof ItemDropped || performance.now() >= this.closeByMs) return;
    this.logger.warn(
      { event: 'call_log.row_refused', requestId: calls[0]!.requestId, err: error },
      'PostgreSQL does not take this call; the others of its batch are written',
    );
  }
}

/**
 * Not a check violation: the worker attaches and drops partitions meanwhile, and the row fits a moment later. Neither a
 * lock nor a table that is another than this process knows: all rows share that.
 */
function isRowFault(error: unknown): boolean {
  return mayBeOfOneRow(error) && !/^(23514|42|55)/.test(sqlState(error) ?? '');
}

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
