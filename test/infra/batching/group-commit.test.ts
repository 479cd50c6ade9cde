import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GroupCommit, GroupCommitByMode } from '../../../src/infra/group-commit.js';

const GATHER_MS = 5;
/** How long, in ms, what is committed patiently waits for a lock at a time. */
const PATIENT_MS = 250;

/**
 * Commits that end when the test says so; an item is doubled, one of `poison` is refused wherever it is, and one of `locked`
 * unless it may wait as long as it takes.
 */
function start(options: { maxItems?: number; maxUnderWay?: number } = {}) {
  const transactions: number[][] = [];
  const poison = new Set<number>();
  const locked = new Set<number>();
  const patient: number[] = [];
  const failedBatches: number[][] = [];
  const ends: (() => void)[] = [];
  let isHeld = false;
  const commits = new GroupCommit<number, number>({
    maxItems: options.maxItems ?? 4,
    gatherMs: GATHER_MS,
    maxUnderWay: options.maxUnderWay ?? 2,
    batchFailed: (items) => failedBatches.push([...items]),
    commit: async (items, lockWaitMs) => {
      transactions.push([...items]);
      if (lockWaitMs === PATIENT_MS) patient.push(...items);
      if (isHeld) await new Promise<void>((resolve) => ends.push(resolve));
      if (items.some((item) => poison.has(item))) throw new Error(`refused: ${items.join(', ')}`);
      if (lockWaitMs !== PATIENT_MS && items.some((item) => locked.has(item)))
        throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
      return items.map((item) => 2 * item);
    },
  });
  return { commits, transactions, poison, locked, patient, failedBatches, ends, hold: () => (isHeld = true) };
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('a group commit', () => {
  it('lets an item leave in its own turn when nothing is under way, with what the turn brings besides', async () => {
    const { commits, transactions } = start();
    const results = Promise.all([commits.add(1), commits.add(2)]);
    expect(transactions).toEqual([]);
    await pass(0);
    expect(transactions).toEqual([[1, 2]]);
    expect(await results).toEqual([2, 4]);
  });

  it('gathers for a few milliseconds while a transaction is under way, and no longer than it takes', async () => {
    const { commits, transactions, ends, hold } = start();
    hold();
    void commits.add(1);
    await pass();
    void commits.add(2);
    await pass(GATHER_MS - 1);
    void commits.add(3);
    expect(transactions).toEqual([[1]]);
    await pass(1);
    expect(transactions).toEqual([[1], [2, 3]]);
    ends.shift()!();
    ends.shift()!();
    await pass();
    void commits.add(4);
    await pass();
    void commits.add(5);
    await pass(1);
    ends.shift()!();
    await pass();
    expect(transactions).toEqual([[1], [2, 3], [4], [5]]);
  });

  it('has no more items in a transaction, and no more of them at once, than it was told', async () => {
    const { commits, transactions, ends, hold } = start({ maxItems: 2, maxUnderWay: 2 });
    hold();
    for (const item of [1, 2, 3, 4, 5, 6]) void commits.add(item);
    await pass(10 * GATHER_MS);
    expect(transactions).toEqual([
      [1, 2],
      [3, 4],
    ]);
    ends.shift()!();
    await pass(GATHER_MS);
    expect(transactions.at(-1)).toEqual([5, 6]);
  });

  it('repeats a failed batch one by one: who is refused alone fails, its neighbours do not (D43)', async () => {
    const { commits, transactions, poison, failedBatches } = start();
    poison.add(2);
    const results = Promise.allSettled([commits.add(1), commits.add(2), commits.add(3)]);
    await pass();
    expect(transactions).toEqual([[1, 2, 3], [1], [2], [3]]);
    expect(failedBatches).toEqual([[1, 2, 3]]);
    expect(await results).toEqual([
      { status: 'fulfilled', value: 2 },
      { status: 'rejected', reason: new Error('refused: 2') },
      { status: 'fulfilled', value: 6 },
    ]);
  });

  it('begins other batches while items of a failed one wait alone, no more of them at once than it was told', async () => {
    const { commits, transactions, poison, ends, hold } = start({ maxUnderWay: 1 });
    hold();
    poison.add(1);
    void commits.add(1).catch(() => undefined);
    void commits.add(2);
    await pass();
    ends.shift()!();
    await pass();
    expect(transactions).toEqual([[1, 2], [1]]);
    void commits.add(3);
    await pass();
    expect(transactions).toEqual([[1, 2], [1], [3]]);
    ends.shift()!();
    await pass();
    expect(transactions).toEqual([[1, 2], [1], [3], [2]]);
  });

  it('has what is locked wait as long as it takes, before nobody but its like (D43)', async () => {
    const { commits, transactions, locked, patient, ends, hold } = start({ maxUnderWay: 1 });
    hold();
    for (const item of [1, 2, 3]) locked.add(item);
    const results = Promise.all([commits.add(1), commits.add(2), commits.add(4)]);
    const end = async (): Promise<void> => {
      await pass();
      ends.shift()!();
      await pass();
    };
    await end();
    await end();
    // The first waits patiently now, and its place among those that are repeated alone is the second's.
    expect(transactions).toEqual([[1, 2, 4], [1], [1], [2]]);
    ends.splice(1, 1)[0]!();
    await pass();
    expect(transactions.slice(4)).toEqual([[4]]);
    const alone = commits.add(3);
    await pass();
    expect(transactions.slice(5)).toEqual([[3]]);
    ends.splice(2, 1)[0]!();
    await pass();
    const next = commits.add(5);
    await pass();
    expect(transactions.slice(6)).toEqual([[5]]);
    while (ends.length > 0) await end();
    expect([await results, await alone, await next]).toEqual([[2, 4, 8], 6, 10]);
    expect(patient).toEqual([1, 2, 3]);
  });

  it('of one mode waits for none of the other (D41)', async () => {
    const ends: (() => void)[] = [];
    const transactions: string[][] = [];
    const commits = new GroupCommitByMode<string, string>({
      maxItems: 4,
      gatherMs: GATHER_MS,
      maxUnderWay: 1,
      commit: async (items) => {
        transactions.push([...items]);
        await new Promise<void>((resolve) => ends.push(resolve));
        return items;
      },
    });
    for (const nth of [1, 2]) {
      void commits.add('sandbox', `sandbox ${nth}`);
      void commits.add('live', `live ${nth}`);
    }
    await pass();
    expect(transactions).toEqual([
      ['sandbox 1', 'sandbox 2'],
      ['live 1', 'live 2'],
    ]);
    ends.pop()!();
    void commits.add('live', 'live 3');
    await pass();
    expect(transactions.at(-1)).toEqual(['live 3']);
  });

  it('shares two places for what waits for locks with all others of Live: the pool has to serve everybody else', async () => {
    const ends: (() => void)[] = [];
    let patient = 0;
    const newCommits = (): GroupCommitByMode<number, number> =>
      new GroupCommitByMode({
        maxItems: 4,
        gatherMs: GATHER_MS,
        maxUnderWay: 4,
        commit: async (items, lockWaitMs) => {
          if (lockWaitMs !== PATIENT_MS) throw Object.assign(new Error('lock timeout'), { code: '55P03' });
          patient++;
          await new Promise<void>((resolve) => ends.push(resolve));
          return items;
        },
      });
    const all = [newCommits(), newCommits(), newCommits()].flatMap((commits) => [
      commits.add('live', 1),
      commits.add('live', 2),
    ]);
    await pass(10 * GATHER_MS);
    expect(patient).toBe(2);
    for (let ended = 0; ended < all.length; ended++) {
      ends.shift()!();
      await pass();
    }
    expect(await Promise.all(all)).toEqual([1, 2, 1, 2, 1, 2]);
  });

  it('waits for a lock in slices: what is locked for longer holds nobody up whose lock is free again', async () => {
    const free = new Set(['other partner']);
    const sliced: string[] = [];
    const commits = new GroupCommit<string, string>({
      maxItems: 1,
      gatherMs: GATHER_MS,
      maxUnderWay: 4,
      commit: async ([item], lockWaitMs) => {
        if (lockWaitMs === PATIENT_MS) sliced.push(item!);
        if (lockWaitMs === PATIENT_MS && free.has(item!)) return [item!];
        await new Promise((resolve) => setTimeout(resolve, lockWaitMs));
        throw Object.assign(new Error('lock timeout'), { code: '55P03' });
      },
    });
    const locked = [1, 2, 3].map((nth) => failureOf(commits.add(`locked ${nth}`)));
    const other = commits.add('other partner');
    // Each of the four waits 500 ms with its batch; then the three that come before it have a slice each.
    await pass(500 + 3 * PATIENT_MS + GATHER_MS);
    expect(await other).toBe('other partner');
    expect(sliced.slice(0, 4)).toEqual(['locked 1', 'locked 2', 'locked 3', 'other partner']);
    // The others fail in the end, and whoever added them comes again.
    await pass(10_000);
    for (const failure of await Promise.all(locked)) expect(failure).toMatchObject({ code: '55P03' });
  });
});

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
