import type { Logger } from 'pino';
import { endsWithin } from '../common/time-limit.js';
import { Batcher, ItemDropped } from '../infra/batcher.js';
import { mayBeOfOneRow, sqlState } from '../infra/database/index.js';
import type { CallRow, CallRowsRepository } from './call-log.repository.js';

/** Maximum waiting rows. Beyond that the oldest are dropped, so that an outage does not fill the memory. */
const MAX_WAITING_ROWS = 50_000;
/** Maximum rows per statement, when more than one flush has piled up. */
const MAX_BATCH_ROWS = 2_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How long shutdown keeps trying. */
const CLOSE_LIMIT_MS = 2_000;
const LAST_STATEMENT_MS = 500;

/** Writes rows in the background, one statement at a time; failed rows are kept and retried (D38). */
export class CallRowWriter {
  private readonly batcher: Batcher<CallRow>;
  private readonly dropped: SuppressedCounter;
  private closeByMs = Infinity;

  constructor(
    rows: Pick<CallRowsRepository, 'insert' | 'insertMissing'>,
    private readonly logger: Logger,
    sized?: (rows: number) => void,
  ) {
    this.dropped = new SuppressedCounter(logger, 'call_log.dropped', 'call log rows dropped');
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

  /** Writes the waiting rows for at most 2 s, then drops the rest and logs their number. */
  async close(): Promise<void> {
    this.closeByMs = performance.now() + CLOSE_LIMIT_MS;
    // A hanging statement must not block shutdown.
    await endsWithin(this.batcher.drain(), CLOSE_LIMIT_MS + LAST_STATEMENT_MS);
    this.batcher.discard();
    this.dropped.report();
  }

  /** Null for a row that PostgreSQL refuses, and after the shutdown limit. */
  private pauseAfter(failures: number, error: unknown, calls: readonly CallRow[]): number | null {
    if (isRowFault(error) || performance.now() >= this.closeByMs) return null;
    this.logger.warn(
      { event: 'call_log.write_failed', rows: calls.length, failures, err: error },
      'failed to write call log rows; retrying',
    );
    if (this.closeByMs < Infinity) return FIRST_PAUSE_MS;
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
  }

  private giveUp(calls: readonly CallRow[], error: unknown): void {
    this.dropped.add(calls.length);
    if (error instanceof ItemDropped || performance.now() >= this.closeByMs) return;
    this.logger.warn(
      { event: 'call_log.row_refused', requestId: calls[0]!.requestId, err: error },
      'PostgreSQL rejected this call; the rest of its batch was written',
    );
  }
}

/**
 * Excludes check violations: the worker attaches and drops partitions concurrently, and the row fits a moment later.
 * Excludes locks and schema mismatches too, because they concern all rows.
 */
function isRowFault(error: unknown): boolean {
  return mayBeOfOneRow(error) && !/^(23514|42|55)/.test(sqlState(error) ?? '');
}

const REPORT_AFTER_MS = 60_000;

/** Counts unwritten rows and logs one line per minute. */
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
