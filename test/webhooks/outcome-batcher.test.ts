import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { ClaimTurns } from '../../src/webhooks/worker/claim-turns.js';
import { verdictsOf } from '../../src/webhooks/worker/endpoint-verdicts.js';
import type { FinishedAttempt } from '../../src/webhooks/worker/finished-attempt.js';
import { OutcomeBatcher } from '../../src/webhooks/worker/outcome-batcher.js';
import type { RecordedAttempt } from '../../src/webhooks/worker/outcomes.repository.js';

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
  it('writes what ends within a few milliseconds at once, in lock order', async () => {
    const { batcher, calls } = batcherOn(() => undefined);
    await Promise.all([
      batcher.add(attempt('whe_b', 'dlv_1')),
      batcher.add(attempt('whe_a', 'dlv_3')),
      batcher.add(attempt('whe_a', 'dlv_2')),
    ]);
    expect(calls).toEqual([['dlv_2', 'dlv_3', 'dlv_1']]);
  });

  it.each(['22P05', '23505', '55P03'])(
    'lets one row that is refused with %s refuse nothing else',
    async (code) => {
      const { batcher } = batcherOn((ids) => {
        if (ids.includes('dlv_3')) throw databaseError(code);
      }, 50);
      const outcomes = await Promise.allSettled(
        ['dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5'].map((id) => batcher.add(attempt('whe_a', id))),
      );
      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
    },
  );

  it('keeps a batch whole and tries again while PostgreSQL is away', async () => {
    let failures = 3;
    const { batcher, calls } = batcherOn(() => {
      if (failures-- > 0) throw databaseError('ECONNREFUSED');
    }, 10_000);
    await Promise.all([batcher.add(attempt('whe_a', 'dlv_1')), batcher.add(attempt('whe_a', 'dlv_2'))]);
    expect(calls).toEqual(Array(4).fill(['dlv_1', 'dlv_2']));
  });

  it('gives up when its patience ends: the lease lapses then', async () => {
    const { batcher } = batcherOn(() => {
      throw databaseError('57P01');
    }, 300);
    const startedAt = performance.now();
    await expect(batcher.add(attempt('whe_a', 'dlv_1'))).rejects.toThrow('refused');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

describe('verdictsOf', () => {
  const at = (ms: number): Date => new Date(ms);
  const delivered = { outcome: 'delivered', exhausted: false, kind: 'event' } as RecordedAttempt;
  const givenUp = { outcome: 'failed', exhausted: true, kind: 'event' } as RecordedAttempt;

  it('applies resets and blocks in the order in which the attempts ended', () => {
    const recorded = [
      { ...givenUp, endpointId: 'block_then_reset', endedAt: at(1) },
      { ...delivered, endpointId: 'block_then_reset', endedAt: at(2) },
      { ...givenUp, endpointId: 'reset_then_block', endedAt: at(2) },
      { ...delivered, endpointId: 'reset_then_block', endedAt: at(1) },
      { ...delivered, endpointId: 'reset', endedAt: at(1) },
      { ...givenUp, endpointId: 'block', endedAt: at(1) },
      { ...givenUp, endpointId: 'block', endedAt: at(2) },
    ];
    expect(verdictsOf(recorded)).toEqual({
      resetFirst: ['reset', 'reset_then_block'],
      exhausted: ['block', 'block_then_reset', 'reset_then_block'],
      resetLast: ['block_then_reset'],
    });
  });

  it('ignores tests, retries and interruptions', () => {
    const recorded = [
      { ...delivered, kind: 'test', endpointId: 'a', endedAt: at(1) },
      { ...givenUp, kind: 'test', endpointId: 'a', endedAt: at(1) },
      { ...delivered, outcome: 'failed', endpointId: 'a', endedAt: at(1) },
      { ...delivered, outcome: 'interrupted', endpointId: 'a', endedAt: at(1) },
    ] as RecordedAttempt[];
    expect(verdictsOf(recorded)).toEqual({ resetFirst: [], exhausted: [], resetLast: [] });
  });
});

describe('ClaimTurns', () => {
  it('lets so many run at once and no more, first come first served, whatever fails', async () => {
    const turns = new ClaimTurns(2);
    const started: number[] = [];
    let running = 0;
    let most = 0;
    const work = async (index: number): Promise<void> => {
      started.push(index);
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      if (index % 2 === 0) throw new Error('claim failed');
    };
    await Promise.allSettled([0, 1, 2, 3, 4, 5].map((index) => turns.take(() => work(index))));
    expect([most, running, started]).toEqual([2, 0, [0, 1, 2, 3, 4, 5]]);
    expect(await turns.take(() => Promise.resolve('free'))).toBe('free');
  });
});
