export interface RunEachOptions<Item> {
  /** No further item starts after it is aborted. */
  readonly stopping?: AbortSignal | undefined;
  /** Called at once when an item failed, because the others may take long. Must not throw. */
  readonly failed?: (item: Item, error: unknown) => void;
}

/**
 * Runs `run` for one item after another; a failing item does not stop the later ones (D43). A sweep that throws this
 * counts as failed. @throws AggregateError after the last item, when some failed
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
