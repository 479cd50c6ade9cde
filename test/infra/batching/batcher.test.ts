import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batcher, type BatcherOptions, ItemDropped } from '../../../src/infra/batcher.js';

/** PostgreSQL's error for an invalid value. */
const dataFault = (): Error => Object.assign(new Error('invalid input syntax'), { code: '22P02' });

/**
 * A batcher that doubles numbers. `answerWith` decides how its batches end, and an item in `poison` fails its batch.
 */
function startBatcher(options: Partial<BatcherOptions<number, number>> = {}) {
  const batches: number[][] = [];
  const failures: number[] = [];
  const results = new Map<number, unknown>();
  const poison = new Set<number>();
  let answer = (): Promise<void> => Promise.resolve();
  const batcher = new Batcher<number, number>({
    maxItems: 10,
    gather: 'turn',
    handle: async (items, failed) => {
      batches.push([...items]);
      failures.push(failed);
      await answer();
      if (items.some((item) => poison.has(item))) throw dataFault();
      return items.map((item) => 2 * item);
    },
    ...options,
  });
  const addAll = (...items: number[]): void => {
    for (const item of items)
      batcher.add(item).then(
        (result) => results.set(item, result),
        (error: Error) => results.set(item, error.message),
      );
  };
  const answerWith = (next: () => Promise<void>): unknown => (answer = next);
  return { batcher, batches, failures, results, poison, addAll, answerWith };
}

type Started = ReturnType<typeof startBatcher>;

/** Holds each batch until the returned function ends the oldest one. */
function holdBatches({ answerWith }: Started): () => Promise<unknown> {
  const ends: (() => void)[] = [];
  answerWith(() => new Promise((resolve) => ends.push(resolve)));
  return async () => {
    ends.shift()!();
    return turn();
  };
}

const away = (): Promise<never> => Promise.reject(new Error('away'));

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const turn = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe('a batch', () => {
  it('contains the items of one event loop turn, and each item gets its own result', async () => {
    const { batches, results, addAll } = startBatcher();
    addAll(1, 2, 3);
    expect(batches).toEqual([]);
    await turn();
    expect(batches).toEqual([[1, 2, 3]]);
    expect([...results]).toEqual([
      [1, 2],
      [2, 4],
      [3, 6],
    ]);
  });

  it('starts at once after a pause, and otherwise no sooner than the interval after the last batch', async () => {
    const { batches, addAll } = startBatcher({ gather: 50 });
    addAll(1);
    await turn();
    expect(batches).toEqual([[1]]);
    await turn(20);
    addAll(2);
    await turn(29);
    addAll(3);
    expect(batches).toEqual([[1]]);
    await turn(1);
    expect(batches).toEqual([[1], [2, 3]]);
    await turn(50);
    addAll(4);
    await turn();
    expect(batches.at(-1)).toEqual([4]);
  });

  it('starts early once enough items are queued', async () => {
    const { batches, addAll } = startBatcher({ gather: 50, fullAt: 3 });
    addAll(1);
    await turn();
    addAll(2, 3);
    await turn();
    expect(batches).toEqual([[1]]);
    addAll(4, 5);
    await turn();
    expect(batches).toEqual([[1], [2, 3, 4, 5]]);
  });

  it('runs alone, unless more concurrency is allowed', async () => {
    for (const [concurrency, started] of [
      [1, 1],
      [2, 2],
    ] as const) {
      const one = startBatcher({ maxItems: 2, concurrency });
      const endOldest = holdBatches(one);
      one.addAll(1, 2, 3, 4, 5, 6);
      await turn(1);
      expect(one.batches).toHaveLength(started);
      for (let ended = 0; ended < 3; ended++) await endOldest();
      expect(one.batches.flat()).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });
});

describe('a batch that runs alone for a while', () => {
  const started = startBatcher.bind(null, { concurrency: 2, aloneMs: 50 });

  it('gathers the next one until it ends', async () => {
    const one = started();
    const endOldest = holdBatches(one);
    one.addAll(1);
    await turn();
    one.addAll(2);
    await turn(20);
    one.addAll(3);
    await turn();
    expect(one.batches).toEqual([[1]]);
    await endOldest();
    expect(one.batches).toEqual([[1], [2, 3]]);
  });

  it('starts the next one at its end, also if batches keep an interval', async () => {
    const one = startBatcher({ concurrency: 2, aloneMs: 50, gather: 2 });
    const endOldest = holdBatches(one);
    one.addAll(1);
    await turn();
    await turn(1);
    one.addAll(2);
    await turn(9);
    await endOldest();
    await turn();
    expect(one.batches).toEqual([[1], [2]]);
  });

  it('does not stop the next one for longer', async () => {
    const one = started();
    holdBatches(one);
    one.addAll(1);
    await turn();
    one.addAll(2);
    await turn(49);
    one.addAll(3);
    expect(one.batches).toEqual([[1]]);
    await turn(1);
    expect(one.batches).toEqual([[1], [2, 3]]);
  });
});

describe('an item that fails', () => {
  it('fails alone, and its neighbors succeed (D43)', async () => {
    const { results, poison, addAll } = startBatcher();
    poison.add(3).add(7);
    addAll(1, 2, 3, 4, 5, 6, 7, 8);
    await turn();
    const refused = 'invalid input syntax';
    expect([...results].sort(([a], [b]) => a - b).map(([, result]) => result)).toEqual([
      2,
      4,
      refused,
      8,
      10,
      12,
      refused,
      16,
    ]);
  });

  it.each([
    ['the code that builds the statement', new TypeError('not a string')],
    ['a number out of range', new RangeError('Invalid time value')],
    ['a statement that is too large', Object.assign(new Error('limit'), { code: '54000' })],
  ])('fails alone when the error comes from %s (D43)', async (_from, error) => {
    const { results, addAll, answerWith, batches } = startBatcher();
    answerWith(() => (batches.at(-1)!.includes(2) ? Promise.reject(error) : Promise.resolve()));
    addAll(1, 2, 3);
    await turn();
    expect(results.get(2)).toBe(error.message);
    expect([results.get(1), results.get(3)]).toEqual([2, 6]);
  });

  it('does not delay the next batch while its own batch is split, one half at a time', async () => {
    const one = startBatcher();
    const endOldest = holdBatches(one);
    one.poison.add(1);
    one.addAll(1, 2, 3, 4);
    await turn();
    await endOldest();
    expect(one.batches.slice(1)).toEqual([[1, 2]]);
    one.addAll(5);
    await turn();
    expect(one.batches.slice(2)).toEqual([[5]]);
    await endOldest();
    expect(one.batches.slice(3)).toEqual([[3, 4]]);
    for (let ended = 0; ended < 4; ended++) await endOldest();
    expect(one.batches.slice(4)).toEqual([[1], [2]]);
    expect(one.results.size).toBe(5);
  });

  it('is retried alone, and its neighbors do not wait for the pause', async () => {
    const { batches, results, poison, addAll } = startBatcher({
      retryAfterMs: (failures) => (failures < 4 ? 100 : null),
    });
    poison.add(1);
    addAll(1, 2);
    await turn();
    expect(batches).toEqual([[1, 2], [1], [2]]);
    expect([...results]).toEqual([[2, 4]]);
    addAll(3);
    await turn(100);
    expect(batches.slice(3)).toEqual([[3], [1]]);
    await turn(100);
    expect(results.get(1)).toBe('invalid input syntax');
  });
});

describe('a batch that fails through no fault of its items', () => {
  it('fails as a whole after one attempt by default', async () => {
    const { batches, results, addAll, answerWith } = startBatcher();
    answerWith(away);
    addAll(1, 2, 3);
    await turn();
    expect(batches).toHaveLength(1);
    expect([...results]).toEqual([1, 2, 3].map((item) => [item, 'away']));
  });

  it('returns to the front of the queue until it succeeds or is given up', async () => {
    const { batches, results, addAll, answerWith } = startBatcher({
      retryAfterMs: (failures) => (failures < 3 ? 100 : null),
    });
    answerWith(away);
    addAll(1, 2);
    await turn(50);
    addAll(3);
    await turn(60);
    expect(batches).toEqual([
      [1, 2],
      [1, 2, 3],
    ]);
    await turn(100);
    expect([...results]).toEqual([1, 2, 3].map((item) => [item, 'away']));
  });

  it('counts its own failures, and a new batch starts at zero', async () => {
    const { failures, addAll, answerWith } = startBatcher({ retryAfterMs: () => 10 });
    answerWith(away);
    addAll(1);
    await turn(25);
    answerWith(() => Promise.resolve());
    await turn(10);
    addAll(2);
    await turn();
    expect(failures).toEqual([0, 1, 2, 3, 0]);
  });
});

describe('a queue that is full', () => {
  it('drops the oldest items, whose promises reject', async () => {
    const dropped: number[] = [];
    const { batches, results, addAll, answerWith } = startBatcher({
      maxWaiting: 20,
      maxItems: 5,
      retryAfterMs: () => 100,
      failed: (items, error) => {
        expect(error).toBeInstanceOf(ItemDropped);
        dropped.push(...items);
      },
    });
    answerWith(away);
    const items = Array.from({ length: 30 }, (_, nth) => nth);
    addAll(...items);
    await turn();
    answerWith(() => Promise.resolve());
    const before = batches.length;
    await turn(1_000);
    expect(batches.slice(before).flat()).toEqual(items.slice(10));
    expect(dropped).toEqual(items.slice(0, 10));
    expect(results.size).toBe(items.length);
  });
});

describe('a caller that ignores the promises', () => {
  it('is notified of failed items by `failed`, without an unhandled rejection', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      const failed: (readonly number[])[] = [];
      const { batcher, answerWith } = startBatcher({ failed: (items) => failed.push(items) });
      answerWith(away);
      void batcher.add(1);
      void batcher.add(2);
      await turn();
      vi.useRealTimers();
      await new Promise((resolve) => setImmediate(resolve));
      expect(failed).toEqual([[1, 2]]);
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off('unhandledRejection', unhandled);
    }
  });
});

describe('drain', () => {
  it('flushes queued items at once and ends when nothing is in progress', async () => {
    const one = startBatcher({ gather: 60_000 });
    const endOldest = holdBatches(one);
    one.addAll(1);
    await turn();
    await endOldest();
    one.addAll(2, 3);
    await turn();
    expect(one.batches).toEqual([[1]]);
    let drained = false;
    const end = one.batcher.drain().then(() => (drained = true));
    await turn();
    expect([one.batches, drained]).toEqual([[[1], [2, 3]], false]);
    await endOldest();
    await end;
  });

  it('waits for the halves of a failed batch', async () => {
    const one = startBatcher();
    const endOldest = holdBatches(one);
    one.poison.add(1);
    one.addAll(1, 2);
    let drained = false;
    const end = one.batcher.drain().then(() => (drained = true));
    await turn();
    for (let ended = 0; ended < 2; ended++) await endOldest();
    expect(drained).toBe(false);
    await endOldest();
    await end;
    expect(one.results.size).toBe(2);
  });

  it('ends a pause early', async () => {
    const { batcher, batches, addAll, answerWith } = startBatcher({ retryAfterMs: () => 60_000 });
    answerWith(away);
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

it('rejects queued items on discard', async () => {
  const { batcher, batches } = startBatcher();
  const item = batcher.add(1);
  batcher.discard();
  await expect(item).rejects.toThrow(ItemDropped);
  await turn();
  expect(batches).toEqual([]);
});
