const BATCH_ROWS = 1_000;
/** Of one run: it must be able to end in time when the worker stops. */
const MAX_BATCHES = 100;

export interface PurgeSteps {
  readonly batchRows?: number;
  readonly maxBatches?: number;
}

/**
 * Runs `step` until it finds less than a full batch; answers how many it has deleted in all. A step deletes at most
 * `limit` rows in a transaction of its own and passes over rows that others have locked, so that nobody waits for a
 * purge for long and a process that dies in one leaves whole steps behind (D44). What is left comes with the next run.
 */
export async function purgeInSteps(
  step: (limit: number) => Promise<number>,
  { batchRows = BATCH_ROWS, maxBatches = MAX_BATCHES }: PurgeSteps = {},
): Promise<number> {
  let purged = 0;
  for (let batch = 0; batch < maxBatches; batch++) {
    const deleted = await step(batchRows);
    purged += deleted;
    if (deleted < batchRows) break;
  }
  return purged;
}
