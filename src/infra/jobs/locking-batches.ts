import type { BatcherOptions } from '../batcher.js';
import { isLockTimeout, isTransientConflict, mayBeOfOneRow } from '../database/index.js';

const LOCK_WAIT_MS = 500;
const LOCK_WAIT_AGAIN_MS = 50;
const PAUSE_MS = 250;
/** Maximum failures of an item with a locked row: about five seconds. Then its job fails and is claimed again. */
const MAX_FAILURES_BY_LOCKS = 20;
/** Maximum failures of a batch. Then each of its items is tried alone, whatever the error (D43). */
const MAX_FAILURES_TOGETHER = 3;

/** Options of a `Batcher` whose batches lock rows of several partners: one locked row delays its own partner only. */
export const LOCKING_BATCHES = {
  maxItems: 64,
  concurrency: 4,
  aloneMs: 10,
  isItemFault: (error, failures) =>
    mayBeOfOneRow(error) || isTransientConflict(error) || failures >= MAX_FAILURES_TOGETHER,
  retryAfterMs: (failures, error) => {
    const maxFailures =
      isLockTimeout(error) || isTransientConflict(error) ? MAX_FAILURES_BY_LOCKS : MAX_FAILURES_TOGETHER;
    const isRefused = mayBeOfOneRow(error) && !isLockTimeout(error);
    return isRefused || failures >= maxFailures ? null : PAUSE_MS;
  },
} as const satisfies Partial<BatcherOptions<unknown, unknown>>;

/** Lock timeout of a statement in such a batch, in milliseconds: very short once a batch with its items has failed. */
export function lockWaitMs(failures: number): number {
  return failures === 0 ? LOCK_WAIT_MS : LOCK_WAIT_AGAIN_MS;
}
