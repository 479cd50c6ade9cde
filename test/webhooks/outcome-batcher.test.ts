import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import type { FinishedAttempt } from '../../src/webhooks/worker/attempt-result.js';
import { OutcomeBatcher } from '../../src/webhooks/worker/outcome-batcher.js';

/** After a write, the batcher collects outcomes for this long. */
const GATHER_MS = 15;
const logger = pino({ level: 'silent' });

function attempt(endpointId: string, deliveryId: string): FinishedAttempt {
  return { endpointId, deliveryId } as FinishedAttempt;
}

function databaseError(code: string): Error {
  return Object.assign(new Error('refused'), { code });
}

function batcherOn(
  record: (ids: string[]) => void,
  patienceMs = 1_000,
): { batcher: OutcomeBatcher; calls: string[][] } {
  const calls: string[][] = [];
  const batcher = new OutcomeBatcher({
    logger,
    patienceMs,
    maxInFlight: 4,
    record: async (attempts) => {
      const ids = attempts.map(({ deliveryId }) => deliveryId);
      calls.push(ids);
      await Promise.resolve();
      record(ids);
    },
  });
  return { batcher, calls };
}

describe('OutcomeBatcher', () => {
  it('writes outcomes of the same few milliseconds together, in lock order', async () => {
    const { batcher, calls } = batcherOn(() => undefined);
    await Promise.all([
      batcher.add(attempt('whe_b', 'dlv_1')),
      batcher.add(attempt('whe_a', 'dlv_3')),
      batcher.add(attempt('whe_a', 'dlv_2')),
    ]);
    expect(calls).toEqual([['dlv_2', 'dlv_3', 'dlv_1']]);
  });

  it('writes a single outcome without waiting, and the outcomes of the next milliseconds together', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    try {
      const { batcher, calls } = batcherOn(() => undefined);
      const first = batcher.add(attempt('whe_a', 'dlv_1'));
      // Without a timer, so the batcher did not wait.
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      expect(calls).toEqual([['dlv_1']]);
      const second = batcher.add(attempt('whe_a', 'dlv_2'));
      await new Promise((resolve) => setImmediate(resolve));
      const third = batcher.add(attempt('whe_a', 'dlv_3'));
      vi.advanceTimersByTime(GATHER_MS);
      await Promise.all([first, second, third]);
      expect(calls).toEqual([['dlv_1'], ['dlv_2', 'dlv_3']]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('writes as many outcomes as one endpoint may have in flight at once, to free its slots', async () => {
    const { batcher, calls } = batcherOn(() => undefined);
    await batcher.add(attempt('whe_a', 'dlv_0'));
    const many = Array.from({ length: 16 }, (_, nth) => `dlv_1${nth}`).sort();
    const written = Promise.all(many.map((id) => batcher.add(attempt('whe_a', id))));
    // Without a timer, so the batcher did not wait.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(calls).toEqual([['dlv_0'], many]);
    await written;
  });

  it.each([
    ['a bug in the code that builds the statement', () => new TypeError('not a string')],
    ['an error that looks like a down server, until the timeout', () => databaseError('57P01')],
  ])('does not let a failing outcome affect its neighbors: %s (D43)', async (_what, poison) => {
    const { batcher } = batcherOn((ids) => {
      if (ids.includes('dlv_2')) throw poison();
    }, 200);
    const outcomes = await Promise.allSettled(
      ['dlv_1', 'dlv_2', 'dlv_3'].map((id) => batcher.add(attempt('whe_a', id))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('keeps a batch together and retries while PostgreSQL is down', async () => {
    let failures = 3;
    const { batcher, calls } = batcherOn(() => {
      if (failures-- > 0) throw databaseError('ECONNREFUSED');
    }, 10_000);
    await Promise.all([batcher.add(attempt('whe_a', 'dlv_1')), batcher.add(attempt('whe_a', 'dlv_2'))]);
    expect(calls).toEqual(Array(4).fill(['dlv_1', 'dlv_2']));
  });

  it('gives up after its timeout, when the lease expires', async () => {
    const { batcher } = batcherOn(() => {
      throw databaseError('57P01');
    }, 300);
    const startedAt = performance.now();
    await expect(batcher.add(attempt('whe_a', 'dlv_1'))).rejects.toThrow('refused');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
