import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/**
 * Maximum wait of a test. It is not a guarantee of the service, only a limit for events that never come. It is long
 * because the cores may be busy. `npm run mutants`, which often reaches it, shortens it.
 */
export const PATIENCE_MS = Number(process.env['TEST_PATIENCE_MS'] ?? 180_000);

/** Keeps running when a test fakes the clock. */
const nowMs = performance.now.bind(performance);

/**
 * Repeats `probe` until it returns something other than null, undefined or false. Probes start often and become rare,
 * because they share the cores with the code under test.
 * @throws Error after `withinMs`
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = PATIENCE_MS,
): Promise<T> {
  const startedAt = nowMs();
  for (;;) {
    const waitedMs = nowMs() - startedAt;
    const answer = await probe();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(Math.min(150, 10 + waitedMs / 10));
    // After a stall, timers run first. Let I/O run before the next probe, which may be the last.
    await nextTurn();
  }
}

const MAX_TRIES = 30;

/**
 * The minimum of up to `mostTries` measurements, which stop at the first one below `promised`. On a busy machine some
 * tries take longer, but only a slow service makes all of them exceed it.
 */
export async function leastOf(
  promised: number,
  attempt: (nth: number) => Promise<number>,
  mostTries = MAX_TRIES,
): Promise<number> {
  let least = Infinity;
  for (let nth = 0; nth < mostTries && least >= promised; nth++) least = Math.min(least, await attempt(nth));
  return least;
}
