import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EsimObservation, observe } from '../../src/esims/esim-lifecycle.js';
import type { EsimEntity } from '../../src/esims/index.js';
import { withLevels } from '../../src/esims/esim-transition.js';
import { levelOfWarning } from '../../src/esims/expiry-warning.js';
import { DAY_MS, GB, ISSUED_AT, newEsim, newReading } from '../esim-sync/esim-sample.js';

const HOUR_MS = 3_600_000;
const hour = (n: number): Date => new Date(ISSUED_AT.getTime() + n * HOUR_MS);

/** An eSIM whose device, provider and sweep act at chosen hours after its issue. */
class Life {
  esim: EsimEntity;
  /** `esim.expiring` so far: the hours after issue, and the level. */
  readonly warned: [at: number, level: number][] = [];
  readonly types: string[] = [];

  constructor(changes: Partial<EsimEntity> = {}) {
    this.esim = newEsim({ mode: 'sandbox', ...changes });
  }

  apply(at: number, observation: EsimObservation): this {
    const { changes, events } = observe(this.esim, observation, hour(at));
    this.esim = { ...this.esim, ...changes };
    this.types.push(...events.map(({ type }) => type));
    return this;
  }

  activate(at: number): this {
    return this.apply(at, { kind: 'activated' });
  }

  addDays(at: number, validityDays: number): this {
    const upstream = { upstreamTotalBytes: null, upstreamExpiresAt: null, queuedPackageId: null };
    return this.apply(at, { kind: 'topped_up', dataBytes: null, validityDays, ...upstream });
  }

  read(at: number, expiresAt: Date): this {
    const reading = newReading({ status: 'active', activatedAt: hour(0), asOf: hour(at), expiresAt });
    return this.apply(at, { kind: 'reported', reading, source: 'poll', askedAt: hour(at) });
  }

  /** Runs the sweep at every quarter of an hour from `at` to `to`. */
  sweep(at: number, to = at): this {
    for (let now = at; now <= to; now += 0.25) {
      const level = levelOfWarning(this.esim, hour(now));
      if (level === null) continue;
      this.warned.push([now, level.hours]);
      this.esim = { ...this.esim, expiryWarningAt: level.nextAt };
    }
    return this;
  }
}

describe('esim.expiring', () => {
  it.each([
    [7, [7 * 24 - 72, 72], [7 * 24 - 24, 24]],
    [4, [24, 72], [72, 24]],
    [3, [48, 24]],
    [2, [24, 24]],
    [1],
  ] as [number, ...[number, number][]][])('warns of the end of a plan of %i days', (days, ...warned) => {
    const life = new Life({ validityDays: days });
    expect(life.activate(0).sweep(0, days * 24 + 1).warned).toEqual(warned);
  });

  it('begins anew after a top-up of days, and skips levels that are already reached', () => {
    const life = new Life({ validityDays: 7 }).activate(0).sweep(0, 150);
    expect(life.warned).toEqual([
      [96, 72],
      [144, 24],
    ]);
    life.warned.length = 0;
    // 18 hours are left, then 42: the level 72 is not true.
    expect(life.addDays(150, 1).sweep(150, 200).warned).toEqual([[168, 24]]);
    life.warned.length = 0;
    expect(life.addDays(170, 7).sweep(170, 400).warned).toEqual([
      [192 + 168 - 72, 72],
      [192 + 168 - 24, 24],
    ]);
  });

  it('keeps announced levels announced when a reading moves the end by minutes', () => {
    const life = new Life({ mode: 'live' }).read(0, hour(100)).sweep(0, 28);
    expect(life.warned).toEqual([[28, 72]]);
    life.read(28.25, hour(101)).sweep(28.25, 40).read(40, hour(99.5)).sweep(40, 75.5);
    life.read(75.75, hour(100)).sweep(75.75, 100);
    expect(life.warned).toEqual([
      [28, 72],
      [75.5, 24],
    ]);
  });

  it('warns at once, with the level that is true, when the end moves before a level', () => {
    const life = new Life({ mode: 'live' }).read(0, hour(200)).sweep(0, 20);
    expect(life.read(20, hour(80)).sweep(20, 70).warned).toEqual([
      [20, 72],
      [56, 24],
    ]);
    const sooner = new Life({ mode: 'live' }).read(0, hour(200)).read(20, hour(30));
    expect(sooner.sweep(20, 40).warned).toEqual([[20, 24]]);
  });

  it('announces only the smallest level after a pause of the worker', () => {
    const life = new Life({ validityDays: 7 }).activate(0);
    expect(life.sweep(7 * 24 - 10, 7 * 24).warned).toEqual([[7 * 24 - 10, 24]]);
    const ended = new Life({ validityDays: 7 }).activate(0);
    expect(ended.sweep(7 * 24, 7 * 24 + 10).warned, 'nothing after the end').toEqual([]);
  });

  it('is due for an eSIM from before the column, at its next reading', () => {
    const life = new Life({ mode: 'live' }).read(0, hour(168));
    life.esim = { ...life.esim, expiryWarningAt: null };
    life.read(1, hour(168));
    expect(life.sweep(1, 168).warned).toEqual([
      [96, 72],
      [144, 24],
    ]);
  });

  it('never states more time than is left, and repeats no level without a longer validity', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('read' as const), left: fc.integer({ min: -5, max: 300 }) }),
      fc.record({ kind: fc.constant('add' as const), days: fc.integer({ min: 1, max: 9 }) }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), step), { maxLength: 12 }), (steps) => {
        const life = new Life({ mode: 'live' }).read(0, hour(100));
        let now = 0;
        let longer = 0;
        for (const [pause, each] of steps) {
          for (const end = now + pause; now < end; now++) {
            const before = life.warned.length;
            life.sweep(now);
            const left = (life.esim.expiresAt!.getTime() - hour(now).getTime()) / HOUR_MS;
            for (const [, level] of life.warned.slice(before)) expect(left).toBeLessThanOrEqual(level);
          }
          const known = life.esim.expiresAt!.getTime();
          if (each.kind === 'read') life.read(now, hour(now + each.left));
          else life.addDays(now, each.days);
          if (life.esim.expiresAt!.getTime() > known + 12 * HOUR_MS) longer++;
        }
        for (const level of [72, 24]) {
          const times = life.warned.filter(([, announced]) => announced === level).length;
          expect(times).toBeLessThanOrEqual(1 + longer);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('esim.usage.level', () => {
  function crossed(esim: EsimEntity, usedBytes: number, levels: readonly number[]): number[] {
    const used = { kind: 'used', usedBytes, goesOn: false, source: 'simulated' } as const;
    const events = withLevels(esim, observe(esim, used, hour(1)), levels, hour(1));
    return events.flatMap((event) => (event.type === 'esim.usage.level' ? [event.data.percent] : []));
  }
  const inUse = (changes: Partial<EsimEntity> = {}): EsimEntity =>
    newEsim({ mode: 'sandbox', status: 'active', activatedAt: hour(0), expiresAt: hour(168), ...changes });

  it('is sent once for each level between the usage before and after', () => {
    expect(crossed(inUse(), 0.3 * GB, [1, 25, 30, 31, 100])).toEqual([1, 25, 30]);
    expect(crossed(inUse({ usedBytes: 0.3 * GB }), 0.3 * GB, [30, 31])).toEqual([]);
    expect(crossed(inUse({ usedBytes: 0.3 * GB }), GB, [30, 31, 99, 100])).toEqual([31, 99, 100]);
  });

  it('follows the threshold of the same percentage', () => {
    const announced = inUse({ usedBytes: 0.49 * GB, thresholdsCrossed: [50] });
    expect(crossed(announced, 0.51 * GB, [50, 51])).toEqual([51]);
  });

  it('starts a new round after a data top-up, and is never sent for unlimited plans', () => {
    const spent = inUse({ usedBytes: 0.9 * GB, totalBytes: 2 * GB });
    expect(crossed(spent, 1.9 * GB, [40, 45, 90, 95])).toEqual([90, 95].slice(0, 2));
    expect(crossed(inUse({ totalBytes: null, unlimited: true }), 5 * GB, [1, 50])).toEqual([]);
  });
});

describe('esim.profile.changed', () => {
  it('follows esim.activated, and is not sent without a change', () => {
    const life = new Life({ validityDays: 7 }).activate(0);
    expect(life.types).toEqual(['esim.activated', 'esim.profile.changed']);
    const same = new Life({ mode: 'live', profileStatus: 'enabled' }).read(1, hour(168)).read(2, hour(168));
    expect(same.types).toEqual(['esim.activated', 'esim.profile.changed']);
    expect(new Date(ISSUED_AT.getTime() + DAY_MS)).toEqual(hour(24));
  });
});
