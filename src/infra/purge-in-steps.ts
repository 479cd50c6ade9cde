import { setTimeout as sleep } from 'node:timers/promises';

const BATCH_ROWS = 1_000;

export interface PurgeSteps {
  readonly batchRows?: number;
  /** Nothing begins after it. */
  readonly stopping?: AbortSignal | undefined;
}

/** What one step of a purge did, and whether another one has anything to do. */
export interface PurgeStep {
  readonly purged: number;
  readonly more: boolean;
}

/**
 * Runs `step` until it finds less than a full batch; answers how many it has deleted in all. A step deletes at most
 * `limit` rows in a transaction of its own and passes over rows that others have locked, so that nobody waits for a
 * purge for long and a process that dies in one leaves whole steps behind (D44). It rests as long as it works, however
 * much there is: the database is others' as well.
 */
export async function purgeInSteps(
  step: (limit: number) => Promise<number>,
  { batchRows = BATCH_ROWS, stopping }: PurgeSteps = {},
): Promise<number> {
  return purgeWhileMore(async () => {
    const purged = await step(batchRows);
    return { purged, more: purged >= batchRows };
  }, stopping);
}

/** As `purgeInSteps`, for steps that know themselves whether there is more: some look at rows that stay. */
export async function purgeWhileMore(
  step: () => Promise<PurgeStep>,
  stopping?: AbortSignal,
): Promise<number> {
  let total = 0;
  while (!stopping?.aborted) {
    const startedAt = performance.now();
    const { purged, more } = await step();
    total += purged;
    if (!more) break;
    await restFor(performance.now() - startedAt, stopping);
  }
  return total;
}

async function restFor(ms: number, stopping?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch((error: unknown) => {
    if (!stopping?.aborted) throw error;
  });
}
