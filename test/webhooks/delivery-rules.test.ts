import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { ATTEMPT_OUTCOMES, DELIVERY_KINDS } from '../../src/webhooks/delivery.js';
import {
  afterAttempt,
  afterAttempts,
  afterDelivered,
  afterExhausted,
  afterAttemptOfDiscarded,
  type DeliveryState,
  type EndedAttempt,
  type EndpointState,
  freeSlots,
  FULL_WINDOW,
  SLOW_START,
  SLOW_START_STEP_MS,
  takesAttempts,
  windowAfter,
} from '../../src/webhooks/delivery-rules.js';
import { testEnvironment } from '../harness/index.js';

/** The default settings (D36). */
const RULES = loadConfig(testEnvironment('postgres://127.0.0.1/none', {})).webhooks;
const NEW: DeliveryState = { kind: 'event', countedAttempts: 0, interruptions: 0 };
const ENABLED: EndpointState = { enabled: true, deleted: false, blocked: false, consecutiveBlocks: 0 };

describe('a delivery after an attempt', () => {
  it('is retried after the documented delays, and fails with the sixth failure', () => {
    let delivery: DeliveryState = NEW;
    const delays: (number | null)[] = [];
    for (let attempt = 1; attempt <= 6; attempt++) {
      const after = afterAttempt(RULES, delivery, 'failed');
      delays.push(after.retryInMs);
      expect(after).toMatchObject({ countedAttempts: attempt, status: attempt < 6 ? 'pending' : 'failed' });
      expect(after.exhausted).toBe(attempt === 6);
      delivery = { ...delivery, ...after };
    }
    expect(delays).toEqual([30_000, 60_000, 180_000, 300_000, 900_000, null]);
  });

  it('is delivered by a 2xx at any attempt', () => {
    for (const countedAttempts of [0, 1, 2, 3, 4, 5])
      for (const kind of DELIVERY_KINDS) {
        const after = afterAttempt(RULES, { ...NEW, kind, countedAttempts }, 'delivered');
        const counted = countedAttempts + 1;
        expect(after).toMatchObject({
          status: 'delivered',
          retryInMs: null,
          exhausted: false,
          countedAttempts: counted,
        });
      }
  });

  it('keeps its due time after an interruption, and every third interruption in a row counts as a failure', () => {
    const first = afterAttempt(RULES, NEW, 'interrupted');
    expect(first).toEqual({
      status: 'pending',
      retryInMs: null,
      exhausted: false,
      countedAttempts: 0,
      interruptions: 1,
    });
    const third = afterAttempt(RULES, { ...NEW, interruptions: 2 }, 'interrupted');
    expect(third).toMatchObject({
      status: 'pending',
      retryInMs: 30_000,
      countedAttempts: 1,
      interruptions: 0,
    });
    const last = afterAttempt(RULES, { ...NEW, countedAttempts: 5, interruptions: 2 }, 'interrupted');
    expect(last).toMatchObject({ status: 'failed', exhausted: true });
  });

  it('fails at the first failed attempt if it is a test', () => {
    const after = afterAttempt(RULES, { ...NEW, kind: 'test' }, 'failed');
    expect(after).toMatchObject({ status: 'failed', exhausted: false });
  });

  it('is delivered by a 2xx and otherwise stays discarded if it was discarded in the meantime', () => {
    for (const outcome of ATTEMPT_OUTCOMES)
      for (const countedAttempts of [0, 5]) {
        const after = afterAttemptOfDiscarded(RULES, { ...NEW, countedAttempts }, outcome);
        const status = outcome === 'delivered' ? 'delivered' : 'discarded';
        expect(after).toMatchObject({ status, retryInMs: null, exhausted: false });
      }
  });
});

describe('an endpoint', () => {
  it('accepts attempts while it is enabled, not deleted and not blocked', () => {
    expect(takesAttempts(ENABLED)).toBe(true);
    for (const other of [{ enabled: false }, { deleted: true }, { blocked: true }])
      expect(takesAttempts({ ...ENABLED, ...other })).toBe(false);
  });

  it('is blocked by each exhausted delivery, and disabled by the fifth consecutive block', () => {
    let endpoint = ENABLED;
    for (let block = 1; block <= 5; block++) {
      endpoint = afterExhausted(RULES, { ...endpoint, blocked: false });
      expect(endpoint).toMatchObject({ consecutiveBlocks: block, enabled: block < 5, blocked: block < 5 });
    }
  });

  it('is not blocked again while it is blocked, disabled or deleted', () => {
    for (const other of [{ enabled: false }, { deleted: true }, { blocked: true }]) {
      const endpoint = { ...ENABLED, ...other, consecutiveBlocks: 2 };
      expect(afterExhausted(RULES, endpoint)).toEqual(endpoint);
    }
  });

  it('counts its blocks from zero after a 2xx, which does not end a current block', () => {
    const endpoint = { ...ENABLED, blocked: true, consecutiveBlocks: 4 };
    expect(afterDelivered(endpoint)).toEqual({ ...endpoint, consecutiveBlocks: 0 });
  });

  it('applies several attempts in order, and ignores tests and retries', () => {
    const delivered: EndedAttempt = { kind: 'event', outcome: 'delivered', exhausted: false };
    const exhausted: EndedAttempt = { kind: 'event', outcome: 'failed', exhausted: true };
    const after = (...attempts: EndedAttempt[]): EndpointState =>
      afterAttempts(RULES, { ...ENABLED, consecutiveBlocks: 4 }, attempts);
    expect(after(exhausted)).toMatchObject({ enabled: false, consecutiveBlocks: 5 });
    expect(after(delivered, exhausted)).toMatchObject({ enabled: true, blocked: true, consecutiveBlocks: 1 });
    expect(after(exhausted, delivered)).toMatchObject({ enabled: false, consecutiveBlocks: 0 });
    expect(after(exhausted, exhausted)).toMatchObject({ consecutiveBlocks: 5 });
    const nothing = after(
      { ...delivered, kind: 'test' },
      { ...exhausted, kind: 'test' },
      { ...exhausted, exhausted: false },
      { ...delivered, outcome: 'interrupted' },
    );
    expect(nothing).toEqual({ ...ENABLED, consecutiveBlocks: 4 });
  });
});

describe('the window of an endpoint', () => {
  const rules = { concurrencyPerEndpoint: 16 };
  const good = { delivered: true, failed: false, timedOut: false };
  const bad = { delivered: false, failed: true, timedOut: false };
  const late = { delivered: false, failed: true, timedOut: true };
  const widthAfter = (width: number | null, seen: typeof good, afterMs = SLOW_START_STEP_MS): number | null =>
    windowAfter(rules, { width, changedAtMs: 0 }, seen, afterMs).width;

  it('allows as many attempts as the setting or its current width', () => {
    expect(freeSlots(rules, FULL_WINDOW, 0)).toBe(16);
    expect(freeSlots(rules, FULL_WINDOW, 16)).toBe(0);
    expect(freeSlots(rules, FULL_WINDOW, 17)).toBe(0);
    expect(freeSlots(rules, SLOW_START, 0)).toBe(1);
    expect(freeSlots(rules, { width: 20, changedAtMs: 0 }, 3)).toBe(13);
  });

  it('doubles with a 2xx during slow start, at most once a second, until it is full', () => {
    expect([1, 2, 4, 8].map((width) => widthAfter(width, good))).toEqual([2, 4, 8, null]);
    expect(widthAfter(2, good, SLOW_START_STEP_MS - 1)).toBe(2);
    expect(widthAfter(null, good)).toBeNull();
  });

  it('halves with a failure during slow start, and stays full otherwise', () => {
    expect([1, 2, 8].map((width) => widthAfter(width, bad))).toEqual([1, 1, 4]);
    expect(widthAfter(null, bad)).toBeNull();
    expect(widthAfter(4, { ...bad, delivered: true })).toBe(2);
  });

  it('drops to one after a timeout, or to half if another attempt got a 2xx at the same time', () => {
    expect([null, 8, 1].map((width) => widthAfter(width, late))).toEqual([1, 1, 1]);
    expect([null, 8, 1].map((width) => widthAfter(width, { ...late, delivered: true }))).toEqual([8, 4, 1]);
  });
});
