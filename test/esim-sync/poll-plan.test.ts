import { describe, expect, it } from 'vitest';
import { DORMANT_MS, IN_USE_MS, OFTEN_MS, pollDelayMs, SPENT_MS } from '../../src/esim-sync/poll-plan.js';
import { GB, minute, newEsim } from './esim-sample.js';

const HOUR = 60;
const DAY = 24 * HOUR;

const spentEsim = () => active({ status: 'depleted', thresholdsCrossed: [50, 80, 100] });

describe('the poll plan', () => {
  it('polls a new or installed eSIM often, and a dormant one once a day', () => {
    expect(pollDelayMs(newEsim(), minute(10))).toBe(OFTEN_MS);
    expect(pollDelayMs(newEsim({ profileStatus: 'installed' }), minute(20 * HOUR))).toBe(OFTEN_MS);
    expect(pollDelayMs(newEsim(), minute(3 * HOUR))).toBe(DORMANT_MS);
    expect(pollDelayMs(newEsim({ profileStatus: 'installed' }), minute(2 * DAY))).toBe(DORMANT_MS);
  });

  it('polls more often the closer the next level is at the current rate of use', () => {
    const at = (share: number, crossed: number[]) =>
      pollDelayMs(active({ usedBytes: share * GB, thresholdsCrossed: crossed }), minute(2 * DAY));
    expect(at(0.2, [])).toBe(IN_USE_MS);
    // The next 4 points, after 46 in 48 h, are about 4 h away.
    expect(at(0.46, [])).toBeCloseTo((48 * HOUR * 60_000 * (4 / 46)) / 2, -2);
    expect(at(0.499, [])).toBe(OFTEN_MS);
    expect(at(0.51, [50])).toBe(IN_USE_MS);
    expect(at(0.999, [50, 80])).toBe(OFTEN_MS);
  });

  it('polls an eSIM often that has just started or is about to end', () => {
    expect(pollDelayMs(active(), minute(30))).toBe(OFTEN_MS);
    expect(pollDelayMs(active({ usedBytes: 1 }), minute(7 * DAY - 60))).toBe(OFTEN_MS);
  });

  it('polls a pass often that has stopped for the day', () => {
    expect(pollDelayMs(active({ status: 'depleted', thresholdsCrossed: [50] }), minute(DAY))).toBe(OFTEN_MS);
  });

  it('polls a depleted, suspended or unlimited eSIM rarely, and an ended one never', () => {
    expect(pollDelayMs(spentEsim(), minute(DAY))).toBe(SPENT_MS);
    expect(pollDelayMs(active({ status: 'suspended' }), minute(DAY))).toBe(SPENT_MS);
    expect(pollDelayMs(active({ totalBytes: null, unlimited: true }), minute(DAY))).toBe(IN_USE_MS);
    expect(pollDelayMs(active({ usedBytes: 0 }), minute(DAY))).toBe(IN_USE_MS);
    expect(pollDelayMs(active({ status: 'expired' }), minute(DAY))).toBeNull();
    expect(pollDelayMs(active({ status: 'canceled' }), minute(DAY))).toBeNull();
  });

  it('needs less than half of 8 calls a second for 100,000 live eSIMs at one eSIM per call', () => {
    const dormant = 60_000 * callsPerSecond(newEsim(), 30 * DAY);
    const starting = 1_500 * callsPerSecond(newEsim(), HOUR);
    const inUse = 28_500 * averageOf(trips().map((trip) => callsPerSecond(trip.esim, trip.atMinute)));
    const spent = 10_000 * callsPerSecond(spentEsim(), 3 * DAY);
    expect(dormant).toBeCloseTo(0.69, 1);
    expect(starting).toBeCloseTo(0.83, 1);
    expect(spent).toBeCloseTo(0.23, 1);
    expect(inUse).toBeGreaterThan(1.3);
    expect(inUse).toBeLessThan(2.2);
    expect(dormant + starting + inUse + spent).toBeLessThan(4);
  });
});

function active(changes: Parameters<typeof newEsim>[0] = {}): ReturnType<typeof newEsim> {
  return newEsim({ status: 'active', activatedAt: minute(0), expiresAt: minute(7 * DAY), ...changes });
}

function callsPerSecond(esim: ReturnType<typeof newEsim>, atMinute: number): number {
  return 1_000 / pollDelayMs(esim, minute(atMinute))!;
}

/** Trips of a week that use 1 to 100 percent at a constant rate, sampled once an hour. */
function trips(): { esim: ReturnType<typeof newEsim>; atMinute: number }[] {
  return Array.from({ length: 100 }, (_, i) =>
    Array.from({ length: 7 * 24 }, (_unused, hour) => {
      const share = ((i + 1) / 100) * ((hour + 0.5) / (7 * 24));
      const thresholdsCrossed = [50, 80].filter((level) => share * 100 >= level);
      const usedBytes = Math.floor(share * GB);
      return { esim: active({ usedBytes, thresholdsCrossed }), atMinute: (hour + 0.5) * HOUR };
    }),
  ).flat();
}

function averageOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
