import { ConcurrencyLimit } from './concurrency-limit.js';
import { mayBeOfOneRow } from './database/index.js';
import { runApart } from './tracing/index.js';

/** Results in the order of their items; nothing when items have no result. */
type Results<R> = [R] extends [void] ? void : readonly R[];

export interface BatcherOptions<T, R = void> {
  /**
   * Handles all items or none: if it throws, none of them may have taken effect. `failures` counts earlier failed
   * batches that contained one of these items.
   */
  handle(items: readonly T[], failures: number): Promise<Results<R>>;
  readonly maxItems: number;
  /**
   * When a batch starts: at the end of the running code, at the end of this turn of the event loop, or at the end of
   * this turn but at least this many milliseconds after the previous batch.
   */
  readonly gather: 'microtask' | 'turn' | number;
  /** Number of waiting items at which a batch starts without gathering more. Default: `maxItems`. */
  readonly fullAt?: number;
  /** Maximum concurrent batches, not counting parts of failed ones. Default 1. */
  readonly concurrency?: number;
  /**
   * Milliseconds for which a batch runs alone, while the next one gathers, before another may run beside it: batches
   * grow under load, and one that waits for a lock stops nobody. Default 0.
   */
  readonly aloneMs?: number;
  /** Maximum waiting items, give or take a batch. Beyond it the oldest are dropped. Default: no limit. */
  readonly maxWaiting?: number;
  /** Whether one item may be at fault, so that the others can be handled without it. Default: `mayBeOfOneRow`. */
  isItemFault?(error: unknown, failures: number, items: readonly T[]): boolean;
  /**
   * Pause in milliseconds before a retry of the one item at fault, or of the batch if no item is at fault. `failures`
   * includes this failure. Null gives up on the items. Default: null.
   */
  retryAfterMs?(failures: number, error: unknown, items: readonly T[]): number | null;
  /**
   * Receives the items that the batcher gave up on. Must not throw. If set, callers may ignore the promises of `add`.
   */
  failed?(items: readonly T[], error: unknown): void;
  /** Receives the number of items of each batch. */
  sized?(items: number): void;
}

/** The item was dropped without an attempt: too many were waiting, or the process is shutting down. */
export class ItemDropped extends Error {
  override readonly name = 'ItemDropped';
}

interface Entry<T, R> {
  readonly item: T;
  failures: number;
  resolve(result: R): void;
  reject(error: unknown): void;
}

interface Failure {
  readonly error: unknown;
  readonly isItemFault: boolean;
  /** Pause before the retry of a batch that is not split; null when it is not retried. */
  readonly retryAfterMs: number | null;
}

/**
 * Gathers items into batches and settles one promise per item. If one item may be at fault, a failed batch is halved
 * until that item fails alone, so that no item fails its neighbors (D43). Halves are handled one at a time,
 * concurrently with the next batches: a half that waits for a lock delays no other batch (D34). If no item is at fault,
 * a failed batch returns to the front of the queue, or fails as a whole.
 */
export class Batcher<T, R = void> {
  private waiting: Entry<T, R>[] = [];
  private underWay = 0;
  private unfinished = 0;
  private leftAt = -Infinity;
  private draining = false;
  private scheduled = false;
  private timer: NodeJS.Timeout | null = null;
  private whenIdle: (() => void)[] = [];
  private readonly endPauses = new Set<() => void>();
  private readonly apart = new ConcurrencyLimit(1);
  private readonly start = (): void => this.flush();

  constructor(private readonly options: BatcherOptions<T, R>) {}

  /**
   * Resolves to the item's result.
   * @throws the error of `handle` when the item is not retried
   * @throws ItemDropped when the item was never attempted
   */
  add(item: T): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const { maxItems, maxWaiting = Infinity } = this.options;
    if (this.options.failed) promise.catch(ignore);
    // Trim with some slack: removing one item from a long list per new item would cost more than the item's work.
    if (this.waiting.push({ item, failures: 0, resolve, reject }) > maxWaiting + maxItems) this.trim();
    this.arm();
    return promise;
  }

  /** Handles the waiting items without gathering more and skips the current pauses. Resolves when nothing is left. */
  async drain(): Promise<void> {
    this.draining = true;
    for (const endPause of this.endPauses) endPause();
    this.arm();
    if (!this.isIdle) await new Promise<void>((resolve) => this.whenIdle.push(resolve));
    this.draining = false;
  }

  /** Drops the waiting items. */
  discard(): void {
    this.drop(this.waiting.splice(0));
  }

  private get isIdle(): boolean {
    return this.waiting.length === 0 && this.unfinished === 0;
  }

  private get isFree(): boolean {
    return this.waiting.length > 0 && this.underWay < (this.options.concurrency ?? 1);
  }

  private arm(): void {
    if (!this.isFree) return;
    if (this.draining) return queueMicrotask(this.start);
    if (this.scheduled) return;
    const { gather, maxItems, fullAt = maxItems, aloneMs = 0 } = this.options;
    const apartMs = Math.max(typeof gather === 'number' ? gather : 0, this.underWay > 0 ? aloneMs : 0);
    if (apartMs > 0 && this.waiting.length < fullAt) {
      if (this.timer) return;
      const waitMs = this.leftAt + apartMs - performance.now();
      if (waitMs > 0) return void (this.timer = setTimeout(this.start, waitMs));
    }
    this.scheduled = true;
    if (gather === 'microtask') queueMicrotask(this.start);
    else setImmediate(this.start);
  }

  private flush(): void {
    this.stopTimer();
    this.scheduled = false;
    // An earlier start may have taken all items.
    if (!this.isFree) return;
    this.leftAt = performance.now();
    const batch = this.take();
    this.underWay++;
    this.unfinished++;
    this.arm();
    // The batch belongs to all of its items, not to the work that happens to start it.
    runApart(() => void this.work(batch));
  }

  private stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private take(): Entry<T, R>[] {
    if (this.waiting.length > this.options.maxItems) return this.waiting.splice(0, this.options.maxItems);
    const all = this.waiting;
    this.waiting = [];
    return all;
  }

  /** Never rejects. */
  private async work(batch: readonly Entry<T, R>[]): Promise<void> {
    this.options.sized?.(batch.length);
    const failure = await this.attempt(batch);
    // The batch keeps its slot during the pause, because other batches would fail too.
    if (failure && !failure.isItemFault) await this.putBack(batch, failure);
    this.underWay--;
    this.stopTimer();
    this.arm();
    if (failure?.isItemFault) await this.takeApart(batch, failure);
    this.unfinished--;
    if (this.isIdle) for (const resolve of this.whenIdle.splice(0)) resolve();
  }

  private async attempt(entries: readonly Entry<T, R>[]): Promise<Failure | null> {
    const items = entries.map(({ item }) => item);
    const before = entries.reduce((most, entry) => Math.max(most, entry.failures), 0);
    try {
      const results = await this.options.handle(items, before);
      entries.forEach((entry, index) => entry.resolve((results as readonly R[] | undefined)?.[index] as R));
      return null;
    } catch (error) {
      const failures = before + 1;
      for (const entry of entries) entry.failures = failures;
      const isItemFault = this.options.isItemFault?.(error, failures, items) ?? mayBeOfOneRow(error);
      const isSplit = isItemFault && items.length > 1;
      const retryAfterMs = isSplit ? null : (this.options.retryAfterMs?.(failures, error, items) ?? null);
      return { error, isItemFault, retryAfterMs };
    }
  }

  /** Splits a batch in which one entry may be at fault. */
  private async takeApart(entries: readonly Entry<T, R>[], failure: Failure): Promise<void> {
    if (entries.length === 1) return this.retryAlone(entries, failure);
    const middle = entries.length >> 1;
    const halves = [entries.slice(0, middle), entries.slice(middle)];
    await Promise.all(halves.map((half) => this.handleApart(half)));
  }

  private async retryAlone(entries: readonly Entry<T, R>[], failure: Failure): Promise<void> {
    if (failure.retryAfterMs === null) return this.giveUp(entries, failure.error);
    await this.pause(failure.retryAfterMs);
    await this.handleApart(entries);
  }

  private async handleApart(entries: readonly Entry<T, R>[]): Promise<void> {
    const failure = await this.apart.run(() => this.attempt(entries));
    if (failure === null) return;
    if (failure.isItemFault) return this.takeApart(entries, failure);
    await this.putBack(entries, failure);
    this.arm();
  }

  /** Requeues a batch in which no entry is at fault. Resolves after the pause. */
  private async putBack(entries: readonly Entry<T, R>[], failure: Failure): Promise<void> {
    if (failure.retryAfterMs === null) return this.giveUp(entries, failure.error);
    this.waiting = entries.concat(this.waiting);
    this.trim();
    await this.pause(failure.retryAfterMs);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.endPauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.endPauses.add(end);
    });
  }

  private trim(): void {
    const excess = this.waiting.length - (this.options.maxWaiting ?? Infinity);
    if (excess > 0) this.drop(this.waiting.splice(0, excess));
  }

  private drop(entries: readonly Entry<T, R>[]): void {
    if (entries.length > 0)
      this.giveUp(entries, new ItemDropped('too many items are waiting, or the process is stopping'));
  }

  private giveUp(entries: readonly Entry<T, R>[], error: unknown): void {
    this.options.failed?.(
      entries.map(({ item }) => item),
      error,
    );
    for (const entry of entries) entry.reject(error);
  }
}

const ignore = (): void => undefined;

export interface HandleApartOptions<T> {
  /** Handles all items or none. */
  handle(items: readonly T[]): Promise<void>;
  /** Receives each item that fails alone. */
  failed(item: T, error: unknown): void | Promise<void>;
  /** Whether one item may be at fault. Default: `mayBeOfOneRow`. */
  isItemFault?(error: unknown): boolean;
}

/**
 * Handles a list at once. If that fails and one item may be at fault, handles the halves, down to single items.
 * @throws any error of `handle` for which no item is at fault; the rest of the list is then not handled
 */
export async function handleApart<T>(items: readonly T[], options: HandleApartOptions<T>): Promise<void> {
  try {
    return await options.handle(items);
  } catch (error) {
    if (!(options.isItemFault?.(error) ?? mayBeOfOneRow(error))) throw error;
    if (items.length === 1) return options.failed(items[0]!, error);
  }
  const middle = items.length >> 1;
  await handleApart(items.slice(0, middle), options);
  await handleApart(items.slice(middle), options);
}
