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
  /** How long a batch that PostgreSQL does not take is tried again; the heartbeat keeps the leases meanwhile. */
  readonly patienceMs: number;
  /**
   * Transactions at once, one of them for parts of failed batches. More than one, so that a batch that waits for a row
   * lock does not hold up every other endpoint (D34).
   */
  readonly maxInFlight: number;
  readonly logger: Logger;
  /** Told how many attempts a batch has. */
  sized?(attempts: number): void;
}

/** From one batch to the next: a batch costs PostgreSQL as much as ten attempts in it. */
const GATHER_MS = 15;
/** So many that wait leave at once: all that one endpoint may have in flight may be among them. */
const MANY = 16;
const MAX_BATCH = 500;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Records attempts: one that ends alone at once, those that end within the next few milliseconds together. */
export class OutcomeBatcher {
  private readonly batcher: Batcher<Outcome>;

  constructor(private readonly options: OutcomeBatcherOptions) {
    this.batcher = new Batcher<Outcome>({
      maxItems: MAX_BATCH,
      gather: GATHER_MS,
      fullAt: MANY,
      concurrency: options.maxInFlight - 1,
      handle: (outcomes) => options.record(outcomes.map(({ attempt }) => attempt).sort(byLockOrder)),
      // In the end each attempt is tried alone: whatever the error is, one attempt must not fail the others (D43).
      isItemFault: (error, failures, outcomes) =>
        mayBeOfOneRow(error) || isTooLate(outcomes, pauseAfter(failures)),
      retryAfterMs: (failures, error, outcomes) => this.retryAfterMs(failures, error, outcomes),
      sized: (attempts) => options.sized?.(attempts),
    });
  }

  /** Resolves when the attempt is committed. @throws what PostgreSQL says, when it does not take it in time. */
  add(attempt: FinishedAttempt): Promise<void> {
    return this.batcher.add({ attempt, giveUpAtMs: performance.now() + this.options.patienceMs });
  }

  private retryAfterMs(failures: number, error: unknown, outcomes: readonly Outcome[]): number | null {
    const pauseMs = pauseAfter(failures);
    if (isTooLate(outcomes, pauseMs)) return null;
    this.options.logger.warn(
      { event: 'webhook.record_failed', count: outcomes.length, err: error },
      'trying again',
    );
    return pauseMs;
  }
}

function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
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
