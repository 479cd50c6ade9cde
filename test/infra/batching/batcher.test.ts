import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batcher, type BatcherOptions } from '../../../src/infra/batcher.js';

/** What PostgreSQL says of a value that it does not take. */
const dataFault = (): Error => Object.assign(new Error('invalid input syntax'), { code: '22P02' });

function startBatcher(options: Partial<BatcherOptions<number>> = {}) {
  const batches: number[][] = [];
  const failed: [number, string][] = [];
  const poison = new Set<number>();
  let answer = (): Promise<void> => Promise.resolve();
  const batcher = new Batcher<number>({
    maxItems: 10,
    gather: 'turn',
    failed: (item, error) => failed.push([item, (error as Error).message]),
    handle: async (items) => {
      batches.push([...items]);
      if (items.some((item) => poison.has(item))) throw dataFault();
      await answer();
    },
    ...options,
  });
  const addAll = (...items: number[]): void => items.forEach((item) => batcher.add(item));
  return {
    batcher,
    batches,
    failed,
    poison,
    addAll,
    answerWith: (next: () => Promise<void>) => (answer = next),
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const turn = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('a batch', () => {
  it('has what comes in one turn of the event loop', async () => {
    const { batches, addAll } = startBatcher();
    addAll(1, 2, 3);
    expect(batches).toEqual([]);
    await turn();
    expect(batches).toEqual([[1, 2, 3]]);
  });

  it('waits for others as long as it was told, and no longer once it is full', async () => {
    const { batches, addAll } = startBatcher({ gather: 50, maxItems: 3 });
    addAll(1);
    await turn(49);
    addAll(2);
    expect(batches).toEqual([]);
    await turn(1);
    expect(batches).toEqual([[1, 2]]);
    addAll(3, 4, 5);
    await turn();
    expect(batches.at(-1)).toEqual([3, 4, 5]);
  });

  it('is the only one under way, unless more are allowed', async () => {
    for (const [concurrency, started] of [
      [1, 1],
      [2, 2],
    ] as const) {
      const { batcher, batches, addAll, answerWith } = startBatcher({ maxItems: 2, concurrency });
      let finish = (): void => undefined;
      answerWith(() => new Promise((resolve) => (finish = resolve)));
      addAll(1, 2, 3, 4, 5, 6);
      await turn(1);
      expect(batches).toHaveLength(started);
      answerWith(() => Promise.resolve());
      finish();
      await turn(1);
      expect(batches.flat()).toEqual([1, 2, 3, 4, 5, 6]);
      batcher.discard();
    }
  });
});

describe('an item that cannot be handled', () => {
  it('does not fail its neighbours', async () => {
    const { batches, failed, poison, addAll } = startBatcher();
    poison.add(3).add(7);
    addAll(1, 2, 3, 4, 5, 6, 7, 8);
    await turn();
    expect(failed).toEqual([
      [3, 'invalid input syntax'],
      [7, 'invalid input syntax'],
    ]);
    const done = batches.filter((batch) => !batch.some((item) => poison.has(item))).flat();
    expect(done).toEqual([1, 2, 4, 5, 6, 8]);
  });

  it.each([
    ['by the code that makes the statement', new TypeError('not a string')],
    ['by a number out of range', new RangeError('Invalid time value')],
    ['by a statement too large for one of its rows', Object.assign(new Error('limit'), { code: '54000' })],
  ])('does not fail its neighbours when it is refused %s (D43)', async (_by, poison) => {
    const { failed, addAll, answerWith, batches } = startBatcher();
    answerWith(() => (batches.at(-1)!.includes(2) ? Promise.reject(poison) : Promise.resolve()));
    addAll(1, 2, 3);
    await turn();
    expect(failed).toEqual([[2, poison.message]]);
  });

  it('is told from a server that is away: then all fail after one attempt', async () => {
    const { batches, failed, addAll, answerWith } = startBatcher();
    answerWith(() => Promise.reject(new Error('away')));
    addAll(1, 2, 3);
    await turn();
    expect(batches).toHaveLength(1);
    expect(failed).toEqual([1, 2, 3].map((item) => [item, 'away']));
  });
});

describe('a failed batch', () => {
  it('goes back to the front of the queue until it is done or given up', async () => {
    const { batches, failed, addAll, answerWith } = startBatcher({
      retryAfterMs: (failures) => (failures < 3 ? 100 : null),
    });
    answerWith(() => Promise.reject(new Error('away')));
    addAll(1, 2);
    await turn(50);
    addAll(3);
    await turn(60);
    expect(batches).toEqual([
      [1, 2],
      [1, 2, 3],
    ]);
    await turn(100);
    expect(failed.map(([item]) => item)).toEqual([1, 2, 3]);
  });

  it('is counted from zero again after a success', async () => {
    const seen: number[] = [];
    let down = true;
    const batcher = new Batcher<number>({
      maxItems: 10,
      gather: 'turn',
      failed: () => undefined,
      retryAfterMs: () => 10,
      handle: (_items, failures) => {
        seen.push(failures);
        return down ? Promise.reject(new Error('away')) : Promise.resolve();
      },
    });
    batcher.add(1);
    await turn(25);
    down = false;
    await turn(10);
    batcher.add(2);
    await turn();
    expect(seen).toEqual([0, 1, 2, 3, 0]);
  });

  it('keeps the newest items when too many wait, and says how many were dropped', async () => {
    let dropped = 0;
    const { batches, addAll, answerWith } = startBatcher({
      maxWaiting: 20,
      maxItems: 5,
      retryAfterMs: () => 100,
      dropped: (count) => (dropped += count),
    });
    answerWith(() => Promise.reject(new Error('away')));
    const items = Array.from({ length: 30 }, (_, nth) => nth);
    addAll(...items);
    await turn();
    answerWith(() => Promise.resolve());
    const before = batches.length;
    await turn(1_000);
    expect(batches.slice(before).flat()).toEqual(items.slice(10));
    expect(dropped).toBe(10);
  });
});

describe('drain', () => {
  it('handles at once what gathers, and ends when nothing is under way', async () => {
    const { batcher, batches, addAll, answerWith } = startBatcher({ gather: 60_000 });
    let finish = (): void => undefined;
    answerWith(() => new Promise((resolve) => (finish = resolve)));
    addAll(1, 2);
    let drained = false;
    const end = batcher.drain().then(() => (drained = true));
    await turn();
    expect([batches, drained]).toEqual([[[1, 2]], false]);
    finish();
    await end;
  });

  it('does not sit out a pause', async () => {
    const { batcher, batches, addAll, answerWith } = startBatcher({ retryAfterMs: () => 60_000 });
    answerWith(() => Promise.reject(new Error('away')));
    addAll(1);
    await turn();
    answerWith(() => Promise.resolve());
    const end = batcher.drain();
    await turn();
    await end;
    expect(batches).toEqual([[1], [1]]);
  });

  it('ends at once when there is nothing to do', async () => {
    await startBatcher().batcher.drain();
  });
});
