import { describe, expect, it } from 'vitest';
import { type EndedAttempt, transitionsOf } from '../../src/webhooks/delivery-rules.js';

describe('transitionsOf', () => {
  /** Two answers of one millisecond. */
  const at = (nth: number): number => Date.parse('2026-11-20T00:00:00.007Z') + nth / 10;
  const delivered = { outcome: 'delivered', exhausted: false, kind: 'event' } as EndedAttempt;
  const givenUp = { outcome: 'failed', exhausted: true, kind: 'event' } as EndedAttempt;

  it('applies resets and blocks in the order in which the attempts ended', () => {
    const recorded = [
      { ...givenUp, endpointId: 'block_then_reset', endedAtMs: at(1) },
      { ...delivered, endpointId: 'block_then_reset', endedAtMs: at(2) },
      { ...givenUp, endpointId: 'reset_then_block', endedAtMs: at(2) },
      { ...delivered, endpointId: 'reset_then_block', endedAtMs: at(1) },
      { ...delivered, endpointId: 'reset', endedAtMs: at(1) },
      { ...givenUp, endpointId: 'block', endedAtMs: at(1) },
      { ...givenUp, endpointId: 'block', endedAtMs: at(2) },
    ];
    expect(transitionsOf(recorded)).toEqual({
      resetFirst: ['reset', 'reset_then_block'],
      exhausted: ['block', 'block_then_reset', 'reset_then_block'],
      resetLast: ['block_then_reset'],
    });
  });

  it('ignores tests, retries and interruptions', () => {
    const recorded = [
      { ...delivered, kind: 'test', endpointId: 'a', endedAtMs: at(1) },
      { ...givenUp, kind: 'test', endpointId: 'a', endedAtMs: at(1) },
      { ...delivered, outcome: 'failed', endpointId: 'a', endedAtMs: at(1) },
      { ...delivered, outcome: 'interrupted', endpointId: 'a', endedAtMs: at(1) },
    ] as EndedAttempt[];
    expect(transitionsOf(recorded)).toEqual({ resetFirst: [], exhausted: [], resetLast: [] });
  });
});
