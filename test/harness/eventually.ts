import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

/**
 * How long a test waits for what must come: no guarantee of ours, only an end for what never comes. Long, as whoever runs the
 * tests may need the cores for something else; `npm run mutants`, which often sees that end, shortens it.
 */
export const PATIENCE_MS = Number(process.env['TEST_PATIENCE_MS'] ?? 180_000);

/** Goes on where a test has stopped the clock of what it tries. */
const nowMs = performance.now.bind(performance);

/**
 * Repeats `probe` until it answers something other than null, undefined or false: at first often, later seldom, as those
 * who ask share the cores with what they wait for. @throws Error after `withinMs`
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
    // Timers run first after a stall: what has come meanwhile is read before the next look, which may be the last.
    await nextTurn();
  }
}

const MAX_TRIES = 30;

/**
 * The least that one of up to `mostTries` measured, which end with the first one below `promised`: where the cores are busy
 * with something else some tries need more, where the service is slow or wasteful all of them do.
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
