import type { Mode } from '../common/mode.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { isLockTimeout } from './database/index.js';
import { runApart } from './tracing/index.js';

export interface GroupCommitOptions<Item, Result> {
  /**
   * Commits items in one transaction and answers their results in their order. When it throws, nothing of them may be
   * committed that could not be committed again: its writes compare what they depend on (fences, unique references).
   * @param lockWaitMs how long it may wait for a lock, milliseconds
   */
  commit(items: readonly Item[], lockWaitMs: number): Promise<readonly Result[]>;
  /** Told of a batch that failed as a whole, before its items are committed one by one. Must not throw. */
  batchFailed?(items: readonly Item[], error: unknown): void;
  /** Items of one transaction at most. So many waiting items leave without gathering more. */
  readonly maxItems: number;
  /** How long, in ms, the first waiting item waits for others while a transaction is under way. */
  readonly gatherMs: number;
  /** Transactions under way at once: one that waits for a lock must not hold up the others (D34). */
  readonly maxUnderWay: number;
}

/** Whatever somebody else has locked for longer, a wallet say, is waited for apart from everything else. */
const SHORT_LOCK_WAIT_MS = 500;
/** Of an item that is repeated alone: most of them are not locked, and wait behind each other. */
const LOCK_WAIT_ALONE_MS = 100;
/** Of an item that was locked then, again and again: a partner whose wallet is locked must not hold up another's. */
const PATIENT_LOCK_WAIT_MS = 250;
/** After so long with locked rows the item fails, and whoever added it comes again. */
const PATIENCE_MS = 5_000;

/**
 * What is committed apart, because a batch failed or because something is locked for longer. Shared by the group commits of a mode: however many have such items, they leave the pool's other connections to everybody else.
 */
interface CommitsApart {
  readonly alone: ConcurrencyLimit;
  readonly patient: ConcurrencyLimit;
}

interface Failure {
  readonly error: unknown;
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
 * fails its neighbours, and what somebody else has locked then waits behind nobody and before nobody but its like (D43).
 */
export class GroupCommit<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private underWay = 0;
  private timer: NodeJS.Timeout | null = null;
  private leavesThisTurn = false;

  constructor(
    private readonly options: GroupCommitOptions<Item, Result>,
    private readonly apart: CommitsApart = newCommitsApart(1),
  ) {}

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
    // It is the work of all of them, and no part of the one that happens to begin it.
    runApart(() => void this.commit(batch));
    this.arm();
  }

  /** Never rejects: each item's own promise says how it went. */
  private async commit(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const failure = await this.attempt(batch, SHORT_LOCK_WAIT_MS);
    this.underWay--;
    this.arm();
    if (failure === null) return;
    if (batch.length === 1) return this.refuse(batch[0]!, failure.error);
    this.options.batchFailed?.(
      batch.map(({ item }) => item),
      failure.error,
    );
    await Promise.all(batch.map((waiting) => this.apart.alone.run(() => this.commitAlone(waiting))));
  }

  private async commitAlone(waiting: Waiting<Item, Result>): Promise<void> {
    const failure = await this.attempt([waiting], LOCK_WAIT_ALONE_MS);
    // It leaves its place to the next one, whatever it waits for then.
    if (failure !== null) void this.refuse(waiting, failure.error);
  }

  /** Never rejects. Tells the item that it failed, unless it has only to wait longer. */
  private async refuse(waiting: Waiting<Item, Result>, error: unknown): Promise<void> {
    if (!isLockTimeout(error)) return waiting.reject(error);
    const deadline = performance.now() + PATIENCE_MS;
    let failure: Failure | null = { error };
    while (failure !== null && isLockTimeout(failure.error) && performance.now() < deadline)
      failure = await this.apart.patient.run(() => this.attempt([waiting], PATIENT_LOCK_WAIT_MS));
    if (failure !== null) waiting.reject(failure.error);
  }

  private async attempt(
    batch: readonly Waiting<Item, Result>[],
    lockWaitMs: number,
  ): Promise<Failure | null> {
    try {
      const items = batch.map(({ item }) => item);
      const results = await this.options.commit(items, lockWaitMs);
      batch.forEach((waiting, index) => waiting.resolve(results[index]!));
      return null;
    } catch (error) {
      return { error };
    }
  }
}

function newCommitsApart(atOnce: number): CommitsApart {
  return { alone: new ConcurrencyLimit(atOnce), patient: new ConcurrencyLimit(atOnce) };
}

/** Of this process. */
const COMMITS_APART: Readonly<Record<Mode, CommitsApart>> = {
  live: newCommitsApart(2),
  sandbox: newCommitsApart(1),
};

/** Group commits of Live and of Sandbox apart: nothing that Sandbox waits for delays what is paid for (D41). */
export class GroupCommitByMode<Item, Result> {
  private readonly commits: Readonly<Record<Mode, GroupCommit<Item, Result>>>;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.commits = {
      live: new GroupCommit(options, COMMITS_APART.live),
      sandbox: new GroupCommit(options, COMMITS_APART.sandbox),
    };
  }

  /** As `GroupCommit.add`. */
  add(mode: Mode, item: Item): Promise<Result> {
    return this.commits[mode].add(item);
  }
}
