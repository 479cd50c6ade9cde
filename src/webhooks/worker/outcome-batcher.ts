import type { Logger } from 'pino';
import { Batcher } from '../../infra/batcher.js';
import { mayBeOfOneRow } from '../../infra/database/index.js';
import type { FinishedAttempt } from './attempt-result.js';

interface Outcome {
  readonly attempt: FinishedAttempt;
  readonly giveUpAtMs: number;
}

export interface OutcomeBatcherOptions {
  record(attempts: readonly FinishedAttempt[]): Promise<void>;
  /** How long a batch that PostgreSQL rejects is retried; the heartbeat renews the leases in the meantime. */
  readonly patienceMs: number;
  /**
   * Concurrent transactions, one of them for parts of failed batches. More than one, so that a batch that waits for a
   * row lock does not hold up every other endpoint (D34).
   */
  readonly maxInFlight: number;
  readonly logger: Logger;
  /** Called with the number of attempts in each batch. */
  sized?(attempts: number): void;
}

/** Interval between batches: the overhead of a batch costs PostgreSQL as much as ten attempts. */
const GATHER_MS = 15;
/** This many waiting attempts are recorded at once, because one endpoint may have no more in flight. */
const MANY = 16;
const MAX_BATCH = 500;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

/** Records attempts: a single one at once, those that end within the next few milliseconds together. */
export class OutcomeBatcher {
  private readonly batcher: Batcher<Outcome>;

  constructor(private readonly options: OutcomeBatcherOptions) {
    this.batcher = new Batcher<Outcome>({
      maxItems: MAX_BATCH,
      gather: GATHER_MS,
      fullAt: MANY,
      concurrency: options.maxInFlight - 1,
      handle: (outcomes) => options.record(outcomes.map(({ attempt }) => attempt).sort(byLockOrder)),
      // Shortly before time is up, each attempt is tried alone: whatever the error, one must not fail the others (D43).
      isItemFault: (error, failures, outcomes) =>
        mayBeOfOneRow(error) || isTooLate(outcomes, pauseAfter(failures)),
      retryAfterMs: (failures, error, outcomes) => this.retryAfterMs(failures, error, outcomes),
      sized: (attempts) => options.sized?.(attempts),
    });
  }

  /** Resolves after the attempt's commit. @throws PostgreSQL's error if it does not accept the attempt in time */
  add(attempt: FinishedAttempt): Promise<void> {
    return this.batcher.add({ attempt, giveUpAtMs: performance.now() + this.options.patienceMs });
  }

  private retryAfterMs(failures: number, error: unknown, outcomes: readonly Outcome[]): number | null {
    const pauseMs = pauseAfter(failures);
    if (isTooLate(outcomes, pauseMs)) return null;
    this.options.logger.warn(
      { event: 'webhook.record_failed', count: outcomes.length, err: error },
      'retrying',
    );
    return pauseMs;
  }
}

function pauseAfter(failures: number): number {
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
}

function isTooLate(outcomes: readonly Outcome[], pauseMs: number): boolean {
  const retryAtMs = performance.now() + pauseMs;
  return outcomes.some(({ giveUpAtMs }) => retryAtMs > giveUpAtMs);
}

/** Lock order: endpoint, then delivery (D40). */
function byLockOrder(a: FinishedAttempt, b: FinishedAttempt): number {
  if (a.endpointId !== b.endpointId) return a.endpointId < b.endpointId ? -1 : 1;
  return a.deliveryId < b.deliveryId ? -1 : 1;
}
