import { mayBeOfOneRow } from './database/index.js';
import { runApart } from './tracing/index.js';

export interface BatcherOptions<T> {
  /**
   * Handles a batch whole: when it throws, none of the items is done. `failures` counts the attempts in a row that
   * failed before this one.
   */
  handle(items: readonly T[], failures: number): Promise<void>;
  /** Told of an item that is given up. Must not throw. */
  failed(item: T, error: unknown): void;
  /** Items of one batch at most. So many waiting items are handled without gathering more. */
  readonly maxItems: number;
  /** How long the first item of a batch waits for others: to the end of the running code, of this turn, or in ms. */
  readonly gather: 'microtask' | 'turn' | number;
  /** Batches under way at once. Default 1. */
  readonly concurrency?: number;
  /** Items that wait at most, give or take a batch; beyond them the oldest are dropped. Default: no limit. */
  readonly maxWaiting?: number;
  /** Told how many items a batch has. */
  sized?(items: number): void;
  /** Told how many items were dropped beyond `maxWaiting`. */
  dropped?(count: number): void;
  /** The pause before a failed batch goes back to the front of the queue; null gives it up. Default: null. */
  retryAfterMs?(failures: number, error: unknown, items: readonly T[]): number | null;
  /** Whether one item may be to blame, so that the others can be done without it. Default: `mayBeOfOneRow`. */
  isItemFault?(error: unknown): boolean;
}

/**
 * Gathers items into batches. A batch that fails by the fault of one item is taken apart, down to single items, so
 * that no item fails its neighbours (D43). What waits for its item's outcome is part of the item itself.
 */
export class Batcher<T> {
  private waiting: T[] = [];
  private underWay = 0;
  private failures = 0;
  private draining = false;
  private timer: NodeJS.Timeout | null = null;
  private scheduled = false;
  private readonly endPauses = new Set<() => void>();
  private whenIdle: (() => void)[] = [];
  private readonly start = (): void => this.flush();

  constructor(private readonly options: BatcherOptions<T>) {}

  add(item: T): void {
    const { maxItems, maxWaiting = Infinity } = this.options;
    // With some slack: to cut one item off the front of a long list for every new one would cost more than its work.
    if (this.waiting.push(item) > maxWaiting + maxItems) this.trim();
    this.arm();
  }

  /** Handles what waits, without gathering and without sitting out a pause; resolves when nothing is under way. */
  async drain(): Promise<void> {
    this.draining = true;
    for (const endPause of this.endPauses) endPause();
    this.arm();
    if (!this.isIdle) await new Promise<void>((resolve) => this.whenIdle.push(resolve));
    this.draining = false;
  }

  /** Forgets what waits; returns how much that was. */
  discard(): number {
    return this.waiting.splice(0).length;
  }

  private get isIdle(): boolean {
    return this.waiting.length === 0 && this.underWay === 0;
  }

  private get isFree(): boolean {
    return this.waiting.length > 0 && this.underWay < (this.options.concurrency ?? 1);
  }

  private arm(): void {
    if (!this.isFree) return;
    const { gather, maxItems } = this.options;
    if (this.draining) return queueMicrotask(this.start);
    if (this.scheduled) return;
    if (gather === 'microtask') {
      this.scheduled = true;
      queueMicrotask(this.start);
    } else if (gather === 'turn' || this.waiting.length >= maxItems) {
      this.scheduled = true;
      setImmediate(this.start);
    } else {
      this.timer ??= setTimeout(this.start, gather);
    }
  }

  private flush(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.scheduled = false;
    // An earlier start may have taken all.
    if (!this.isFree) return;
    const batch = this.take();
    this.underWay++;
    this.arm();
    // It is the work of all of them, and no part of the one that happens to begin it.
    runApart(() => void this.work(batch));
  }

  private take(): T[] {
    if (this.waiting.length > this.options.maxItems) return this.waiting.splice(0, this.options.maxItems);
    const all = this.waiting;
    this.waiting = [];
    return all;
  }

  private async work(batch: T[]): Promise<void> {
    this.options.sized?.(batch.length);
    await this.handle(batch);
    this.underWay--;
    this.arm();
    if (!this.isIdle) return;
    for (const resolve of this.whenIdle.splice(0)) resolve();
  }

  /** Never rejects. */
  private handle(items: readonly T[]): Promise<void> {
    const { options } = this;
    return handleApart(items, {
      handle: async (part) => {
        await options.handle(part, this.failures);
        this.failures = 0;
      },
      failed: (item, error) => options.failed(item, error),
      whole: (part, error) => this.retry(part, error),
      isItemFault: (error) => options.isItemFault?.(error) ?? mayBeOfOneRow(error),
    });
  }

  private async retry(items: readonly T[], error: unknown): Promise<void> {
    this.failures++;
    const pauseMs = this.options.retryAfterMs?.(this.failures, error, items) ?? null;
    if (pauseMs === null) return items.forEach((item) => this.options.failed(item, error));
    this.waiting = items.concat(this.waiting);
    this.trim();
    await this.pause(pauseMs);
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
    const { maxWaiting } = this.options;
    if (maxWaiting === undefined || this.waiting.length <= maxWaiting) return;
    const excess = this.waiting.length - maxWaiting;
    this.waiting.splice(0, excess);
    this.options.dropped?.(excess);
  }
}

export interface HandleApartOptions<T> {
  /** Handles items whole: when it throws, none of them is done. */
  handle(items: readonly T[]): Promise<void>;
  /** Told of the one item that cannot be handled. */
  failed(item: T, error: unknown): void | Promise<void>;
  /** Told of items that failed by no fault of theirs: the server is away, say. */
  whole(items: readonly T[], error: unknown): void | Promise<void>;
  /** Whether one item may be to blame. Default: `mayBeOfOneRow`. */
  isItemFault?(error: unknown): boolean;
}

/** Handles items at once; when that fails by the fault of one, in halves down to single items (D43). */
export async function handleApart<T>(items: readonly T[], options: HandleApartOptions<T>): Promise<void> {
  try {
    return await options.handle(items);
  } catch (error) {
    const isItemFault = options.isItemFault?.(error) ?? mayBeOfOneRow(error);
    if (!isItemFault) return options.whole(items, error);
    if (items.length === 1) return options.failed(items[0]!, error);
  }
  const middle = items.length >> 1;
  await handleApart(items.slice(0, middle), options);
  await handleApart(items.slice(middle), options);
}
