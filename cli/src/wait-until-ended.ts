import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, EXIT } from './exit-codes.js';
import type { Output } from './terminal/output.js';

/** Each call waits this long at the service, so that the progress line keeps counting. */
const WAIT_SECONDS = 2;
/** Pause after a call that the service did not hold, because too many others wait. */
const PAUSE_MS = 2_000;

const OPEN: ReadonlySet<string> = new Set(['pending', 'processing', 'canceling']);

/**
 * Reads an order or top-up until it is neither pending, processing nor canceling.
 * @throws CliError if it has not ended after `withinSeconds`. The service continues to process it.
 */
export async function waitUntilEnded<T extends { readonly id: string; readonly status: string }>(
  read: (waitSeconds: number) => Promise<T>,
  { output, withinSeconds, signal }: { output: Output; withinSeconds: number; signal: AbortSignal },
): Promise<T> {
  const progress = output.progress();
  const startedAt = performance.now();
  try {
    for (;;) {
      const askedAt = performance.now();
      const found = await read(WAIT_SECONDS);
      if (!OPEN.has(found.status)) return found;
      const seconds = (performance.now() - startedAt) / 1_000;
      if (seconds > withinSeconds) {
        throw new CliError(
          EXIT.failed,
          `${found.id} is still ${found.status} after ${withinSeconds} s`,
          'It is still in progress. Check again later.',
        );
      }
      progress.update(`${found.id} ${found.status}, ${seconds.toFixed(0)} s`);
      if (performance.now() - askedAt < 500) await sleep(PAUSE_MS, undefined, { signal });
    }
  } finally {
    progress.done();
  }
}
