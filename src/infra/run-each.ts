export interface RunEachOptions<Item> {
  /** No further item begins after it. */
  readonly stopping?: AbortSignal | undefined;
  /** Told of an item at once when it failed: the others may take long. Must not throw. */
  readonly failed?: (item: Item, error: unknown) => void;
}

/**
 * Runs `run` for one item after another; one that fails holds up none behind it (D43). A sweep that ends so counts as
 * failed, and its last success stays as old as it is. @throws AggregateError after the last item, when some failed
 */
export async function runEach<Item>(
  items: Iterable<Item>,
  run: (item: Item) => Promise<unknown>,
  options: RunEachOptions<Item> = {},
): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    if (options.stopping?.aborted) break;
    try {
      await run(item);
    } catch (error) {
      failures.push(error);
      options.failed?.(item, error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('; '));
}
