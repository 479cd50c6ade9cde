export interface GroupCommitOptions<Item, Result> {
  /**
   * Commits items in one transaction and answers their results in their order. When it throws, nothing of them may be
   * committed that could not be committed again: its writes compare what they depend on (fences, unique references).
   */
  commit(items: readonly Item[]): Promise<readonly Result[]>;
  /** Told of a batch that failed as a whole, before its items are committed one by one. Must not throw. */
  batchFailed?(items: readonly Item[], error: unknown): void;
  /** Items of one transaction at most. So many waiting items leave without gathering more. */
  readonly maxItems: number;
  /** How long, in ms, the first waiting item waits for others while a transaction is under way. */
  readonly gatherMs: number;
  /** Transactions of several items under way at once: one that waits for a lock must not hold up the others (D34). */
  readonly maxUnderWay: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Commits what ends at about the same time in one transaction. With nothing under way an item leaves at the end of this
 * turn of the event loop, together with what the turn brought besides: alone, nobody waits. While a transaction is under
 * way, items gather for a few milliseconds, or until it ends. A batch that fails is repeated one by one, so that no item
 * fails its neighbours (D43).
 */
export class GroupCommit<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private underWay = 0;
  private timer: NodeJS.Timeout | null = null;
  private leavesThisTurn = false;

  constructor(private readonly options: GroupCommitOptions<Item, Result>) {}

  /** Resolves when the item is committed. @throws what `commit` says of the item alone */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.arm();
    });
  }

  private arm(): void {
    const { maxItems, gatherMs, maxUnderWay } = this.options;
    if (this.leavesThisTurn || this.waiting.length === 0 || this.underWay >= maxUnderWay) return;
    if (this.underWay > 0 && this.waiting.length < maxItems) {
      this.timer ??= setTimeout(() => this.leave(), gatherMs);
      return;
    }
    this.leavesThisTurn = true;
    setImmediate(() => this.leave());
  }

  private leave(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.leavesThisTurn = false;
    // The timer's batch may have left with a transaction that ended.
    if (this.waiting.length === 0 || this.underWay >= this.options.maxUnderWay) return;
    const batch = this.waiting.splice(0, this.options.maxItems);
    this.underWay++;
    void this.commit(batch);
    this.arm();
  }

  /** Never rejects: each item's own promise says how it went. */
  private async commit(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const failure = await this.attempt(batch);
    this.underWay--;
    this.arm();
    if (failure === null) return;
    if (batch.length === 1) return batch[0]!.reject(failure.error);
    this.options.batchFailed?.(
      batch.map(({ item }) => item),
      failure.error,
    );
    // As many at once as without batches: what waits for a lock for seconds holds up nobody but itself.
    await Promise.all(batch.map((waiting) => this.commitAlone(waiting)));
  }

  private async commitAlone(waiting: Waiting<Item, Result>): Promise<void> {
    const failure = await this.attempt([waiting]);
    if (failure !== null) waiting.reject(failure.error);
  }

  private async attempt(batch: readonly Waiting<Item, Result>[]): Promise<{ error: unknown } | null> {
    try {
      const results = await this.options.commit(batch.map(({ item }) => item));
      batch.forEach((waiting, index) => waiting.resolve(results[index]!));
      return null;
    } catch (error) {
      return { error };
    }
  }
}
