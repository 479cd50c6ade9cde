export type Settled<T> = { readonly value: T } | { readonly error: Error };

/**
 * Runs a call per item, at most `atOnce` concurrently. After a failure no further call starts, and the calls in flight
 * are awaited, so that nothing continues unobserved. Items that never started are missing from the result.
 */
export async function settleEach<T, R>(
  items: readonly T[],
  atOnce: number,
  run: (item: T) => Promise<R>,
): Promise<readonly Settled<R>[]> {
  const settled: Settled<R>[] = [];
  let next = 0;
  let hasFailed = false;
  const work = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      const index = next++;
      try {
        settled[index] = { value: await run(items[index] as T) };
      } catch (error) {
        settled[index] = {
          error: error instanceof Error ? error : new Error('not an error', { cause: error }),
        };
        hasFailed = true;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return settled;
}

/** The results of read-only calls. @throws the first error */
export async function eachValue<T, R>(
  items: readonly T[],
  atOnce: number,
  run: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const settled = await settleEach(items, atOnce, run);
  return settled.map((one) => {
    if ('error' in one) throw one.error;
    return one.value;
  });
}
