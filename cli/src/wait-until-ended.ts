import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, EXIT } from './exit-codes.js';
import type { Output } from './terminal/output.js';

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 2_000;

/**
 * Reads an order or top-up until it is neither pending nor processing.
 * @throws CliError if it has not ended after `withinSeconds`. The service continues to process it.
 */
export async function waitUntilEnded<T extends { readonly id: string; readonly status: string }>(
  read: () => Promise<T>,
  { output, withinSeconds, signal }: { output: Output; withinSeconds: number; signal: AbortSignal },
): Promise<T> {
  const progress = output.progress();
  const startedAt = performance.now();
  try {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 1.5, MAX_WAIT_MS)) {
      const found = await read();
      if (found.status !== 'pending' && found.status !== 'processing') return found;
      const seconds = (performance.now() - startedAt) / 1_000;
      if (seconds > withinSeconds) {
        throw new CliError(
          EXIT.failed,
          `${found.id} is still ${found.status} after ${withinSeconds} s`,
          'It is still in progress. Check again later.',
        );
      }
      progress.update(`${found.id} ${found.status}, ${seconds.toFixed(0)} s`);
      await sleep(waitMs, undefined, { signal });
    }
  } finally {
    progress.done();
  }
}
