import { setTimeout as sleep } from 'node:timers/promises';

/** How long it may take is no guarantee of ours, only an end for what never comes. Repeats `probe` until it answers something other than null, undefined or false. @throws Error after `withinMs`. */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await probe();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(25);
  }
}
