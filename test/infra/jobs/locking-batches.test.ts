import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batcher } from '../../../src/infra/batcher.js';
import { LOCKING_BATCHES, lockWaitMs } from '../../../src/infra/jobs/index.js';

const databaseError = (code: string): Error => Object.assign(new Error(`SQLSTATE ${code}`), { code });

/** Writes that wait for locked items up to the lock timeout. `fault` decides which items fail, and how. */
function startWrites(fault: (item: number) => Error | null = () => null) {
  const locked = new Set<number>();
  const batches: number[][] = [];
  const batcher = new Batcher<number, number>({
    ...LOCKING_BATCHES,
    gather: 5,
    handle: async (items, failures) => {
      batches.push([...items]);
      for (const item of items) {
        const error = fault(item);
        if (error) throw error;
      }
      if (!items.some((item) => locked.has(item))) return items.map((item) => 2 * item);
      await new Promise((resolve) => setTimeout(resolve, lockWaitMs(failures)));
      throw databaseError('55P03');
    },
  });
  return { batcher, batches, locked };
}

const settled = async (all: Promise<unknown>): Promise<() => unknown> => {
  let result: unknown;
  void all.then((value) => (result = value));
  await pass(0);
  return () => result;
};

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

const outcomeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: { readonly code?: string; readonly message: string }) => error.code ?? error.message);

describe('a batch with a locked row', () => {
  it('delays the neighbors of that row by less than a second, and later batches by a few milliseconds', async () => {
    const { batcher, locked } = startWrites();
    locked.add(3);
    void outcomeOf(batcher.add(3));
    const neighbors = await settled(Promise.all([1, 2, 4, 5, 6, 7, 8].map((item) => batcher.add(item))));
    const later = await settled(batcher.add(20));
    await pass(LOCKING_BATCHES.aloneMs + 5);
    expect(later()).toBe(40);
    await pass(1_000);
    expect(neighbors()).toEqual([2, 4, 8, 10, 12, 14, 16]);
  });

  it('is written when the lock is released within a few seconds', async () => {
    const { batcher, locked } = startWrites();
    locked.add(1);
    const one = await settled(batcher.add(1));
    await pass(3_000);
    expect(one()).toBeUndefined();
    locked.clear();
    await pass(300);
    expect(one()).toBe(2);
  });

  it('fails with the lock timeout when the lock is held, while others come and go', async () => {
    const { batcher, locked } = startWrites();
    locked.add(1).add(2).add(3);
    const stuck = await settled(Promise.all([1, 2, 3].map((item) => outcomeOf(batcher.add(item)))));
    for (let nth = 0; nth < 20; nth++) {
      const other = await settled(batcher.add(100 + nth));
      await pass(500);
      expect(other()).toBe(200 + 2 * nth);
    }
    expect(stuck()).toEqual(['55P03', '55P03', '55P03']);
  });
});

describe('a batch that fails', () => {
  it('loses only the item that PostgreSQL rejects, at once', async () => {
    const { batcher } = startWrites((item) => (item === 2 ? databaseError('22P02') : null));
    const all = await settled(Promise.all([1, 2, 3].map((item) => outcomeOf(batcher.add(item)))));
    expect(all()).toEqual([2, '22P02', 6]);
  });

  it('is written after a lost connection', async () => {
    let lost = 2;
    const { batcher, batches } = startWrites(() => (lost-- > 0 ? new Error('Connection terminated') : null));
    const all = await settled(Promise.all([batcher.add(1), batcher.add(2)]));
    await pass(600);
    expect(all()).toEqual([2, 4]);
    expect(batches).toEqual(Array(3).fill([1, 2]));
  });

  it('loses only one item, even if its error looks like a lost connection (D43)', async () => {
    const { batcher } = startWrites((item) => (item === 2 ? new Error('Connection terminated') : null));
    const all = await settled(Promise.all([1, 2, 3].map((item) => outcomeOf(batcher.add(item)))));
    await pass(1_000);
    expect(all()).toEqual([2, 'Connection terminated', 6]);
  });
});
