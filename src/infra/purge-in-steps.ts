import { setTimeout as sleep } from 'node:timers/promises';

const BATCH_ROWS = 1_000;

export interface PurgeSteps {
  readonly batchRows?: number;
  /** No step starts after it is aborted. */
  readonly stopping?: AbortSignal | undefined;
}

/** Result of one purge step, and whether another one would find work. */
export interface PurgeStep {
  readonly purged: number;
  readonly more: boolean;
}

/**
 * Runs `step` until it finds less than a full batch, and returns the total number of deleted rows. A step deletes at
 * most `limit` rows in its own transaction and skips locked rows. So nothing waits long for a purge, and the steps
 * before a crash remain done (D44). Between steps it pauses for as long as each step took, because others use the
 * database too.
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

/**
 * Like `purgeInSteps`, for steps that return whether rows remain. Some read rows that they keep, so the number of
 * purged rows does not tell.
 */
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
