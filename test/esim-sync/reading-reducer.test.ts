import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EsimEvent } from '../../src/esims/esim-transition.js';
import type { EsimEntity } from '../../src/esims/index.js';
import { observe } from '../../src/esims/esim-lifecycle.js';
import type { UsageReport } from '../../src/esims/usage-report.js';
import type { ProviderUsageReport } from '../../src/providers/index.js';
import { DAY_MS, GB, minute, newEsim, newReading } from './esim-sample.js';

/** Applies readings in order, and returns the events of the document's types. Each was requested at its `asOf` by default. */
function apply(
  start: EsimEntity,
  readings: readonly (Partial<ProviderUsageReport> | UsageReport)[],
  now = minute(100_000),
): { esim: EsimEntity; events: EsimEvent[] } {
  const esim = { ...start };
  const events: EsimEvent[] = [];
  for (const given of readings) {
    const read = 'reading' in given ? given : readOf(newReading(given));
    const transition = observe(esim, { kind: 'reported', ...read }, now);
    Object.assign(esim, transition.changes);
    events.push(...transition.events.filter(({ type }) => type !== 'esim.profile.changed'));
  }
  return { esim, events };
}

function readOf(reading: ProviderUsageReport, askedAt = reading.asOf): UsageReport {
  return { reading, source: 'poll', askedAt };
}

function names(events: readonly EsimEvent[]): string[] {
  return events.map((event) =>
    event.type === 'esim.usage.threshold' ? `threshold ${event.data.threshold_percent}` : event.type,
  );
}

const ACTIVE = { status: 'active', profileStatus: 'enabled' } as const;

describe('a reading after an action', () => {
  const inUse = (changes: Partial<EsimEntity>) => newEsim({ ...ACTIVE, activatedAt: minute(1), ...changes });

  it('does not end a suspension that it may not show yet, and ends it later', () => {
    const suspended = inUse({ status: 'suspended', actedAt: minute(100) });
    const soon = apply(suspended, [{ ...ACTIVE, asOf: minute(105) }]);
    expect(soon.esim.status).toBe('suspended');
    expect(names(soon.events)).toEqual([]);
    const later = apply(suspended, [{ ...ACTIVE, asOf: minute(111) }]);
    expect(later.esim.status).toBe('active');
    expect(names(later.events)).toEqual(['esim.resumed']);
  });

  it('does not suspend an eSIM again that was just resumed', () => {
    const { esim, events } = apply(inUse({ actedAt: minute(100) }), [
      { ...ACTIVE, status: 'suspended', asOf: minute(99) },
      { ...ACTIVE, status: 'suspended', asOf: minute(105) },
    ]);
    expect(esim.status).toBe('active');
    expect(names(events)).toEqual([]);
  });

  it('never makes a revoked eSIM active again', () => {
    const revoked = inUse({ status: 'canceled', actedAt: minute(100), revokedAt: minute(100) });
    const { esim, events } = apply(revoked, [
      { ...ACTIVE, usedBytes: 0.9 * GB, asOf: minute(99) },
      { ...ACTIVE, usedBytes: 0.9 * GB, asOf: minute(5_000) },
      { ...ACTIVE, status: 'suspended', asOf: minute(5_001) },
    ]);
    expect(esim).toMatchObject({ status: 'canceled', usedBytes: 0.9 * GB });
    expect(names(events)).toEqual([]);
  });

  it('announces the effect with the reason of the request in progress, and its end does not repeat that', () => {
    const pending = inUse({ pendingAction: 'suspend', actionReason: 'Stolen', actionSentAt: minute(9) });
    const { esim, events } = apply(pending, [{ ...ACTIVE, status: 'suspended', asOf: minute(10) }]);
    expect(events).toMatchObject([{ type: 'esim.suspended', data: { reason: 'Stolen' } }]);
    expect(esim).toMatchObject({ status: 'suspended', pendingAction: 'suspend' });
    const end = observe(esim, { kind: 'acted', failure: null, goesOn: false }, minute(11));
    expect(end.events).toEqual([]);
    expect(end.changes).toMatchObject({ pendingAction: null, actedAt: minute(11) });
  });

  it('of an eSIM that expired meanwhile ends the request with the reason', () => {
    const expired = inUse({ status: 'expired', pendingAction: 'suspend' });
    const { changes, events } = observe(expired, { kind: 'acted', failure: null, goesOn: false }, minute(11));
    expect(changes).toMatchObject({
      pendingAction: null,
      actionFailure: { action: 'suspend', code: 'esim_expired' },
    });
    expect(changes).not.toHaveProperty('status');
    expect(events).toEqual([]);
  });
});

describe('a reading', () => {
  it('activates an eSIM at its first use, with the times from the provider', () => {
    const times = { activatedAt: minute(5), expiresAt: minute(5 + 7 * 1440 + 60) };
    const { esim, events } = apply(newEsim(), [{ ...ACTIVE, ...times, usedBytes: 10, asOf: minute(9) }]);
    expect(esim).toMatchObject({ ...ACTIVE, ...times, usedBytes: 10, usageAsOf: minute(9) });
    expect(names(events)).toEqual(['esim.activated']);
  });

  it('estimates start and end when the provider reports none, and corrects them later', () => {
    const first = apply(newEsim(), [{ usedBytes: 10, asOf: minute(60) }]).esim;
    const week = new Date(minute(60).getTime() + 7 * DAY_MS);
    expect(first).toMatchObject({ status: 'active', activatedAt: minute(60), expiresAt: week });
    const told = { ...ACTIVE, activatedAt: minute(50), expiresAt: minute(9_000), asOf: minute(70) };
    expect(apply(first, [told]).esim).toMatchObject({ activatedAt: minute(50), expiresAt: minute(9_000) });
  });

  it('does not mistake the install deadline for the end of the validity', () => {
    const { esim } = apply(newEsim(), [{ profileStatus: 'installed', expiresAt: minute(180 * 1440) }]);
    expect(esim).toMatchObject({ status: 'issued', profileStatus: 'installed', expiresAt: null });
  });

  it('announces several skipped levels, each once and ascending', () => {
    const used = { ...ACTIVE, usedBytes: 0.85 * GB, asOf: minute(200) };
    const { esim, events } = apply(newEsim(), [{ ...ACTIVE }, used, used, { ...used, usedBytes: GB }]);
    expect(names(events)).toEqual(['esim.activated', 'threshold 50', 'threshold 80', 'threshold 100']);
    expect(esim).toMatchObject({ status: 'depleted', thresholdsCrossed: [50, 80, 100] });
    expect(events[1]!.data).toMatchObject({ used_bytes: 0.85 * GB, as_of: minute(200).toISOString() });
  });

  it('compares levels as integers, one byte below and exactly on them', () => {
    const total = 1_073_741_825;
    const start = newEsim({ totalBytes: total });
    const at = (usedBytes: number) =>
      names(apply(start, [{ ...ACTIVE, usedBytes, totalBytes: total }]).events);
    expect(at(536_870_912)).toEqual(['esim.activated']);
    expect(at(536_870_913)).toEqual(['esim.activated', 'threshold 50']);
  });

  it('derives no usage when a provider does not know the total', () => {
    const start = newEsim({ totalBytes: 2 * GB, toppedUpAt: minute(1) });
    for (const totalBytes of [0, null]) {
      const { esim } = apply(start, [{ ...ACTIVE, usedBytes: 0.1 * GB, totalBytes, asOf: minute(900) }]);
      expect(esim).toMatchObject({ status: 'active', usedBytes: 0.1 * GB, thresholdsCrossed: [] });
    }
  });

  it('never regresses on an issued reading or on a smaller or older figure', () => {
    const now = apply(newEsim(), [{ ...ACTIVE, usedBytes: 0.6 * GB, asOf: minute(100) }]).esim;
    const { esim, events } = apply(now, [
      { status: 'issued', profileStatus: 'enabled', usedBytes: 0, asOf: minute(110) },
      { ...ACTIVE, usedBytes: 0.2 * GB, asOf: minute(50) },
      { ...ACTIVE, usedBytes: 0.6 * GB, asOf: minute(120) },
    ]);
    expect(esim).toMatchObject({ status: 'active', usedBytes: 0.6 * GB, usageAsOf: minute(120) });
    expect(events).toEqual([]);
  });

  it('depletes the eSIM when the provider says so, even if its figure is not exact', () => {
    const { esim, events } = apply(newEsim(), [
      { ...ACTIVE, asOf: minute(2) },
      { status: 'depleted', usedBytes: GB - 824, asOf: minute(300) },
    ]);
    expect(esim).toMatchObject({ status: 'depleted', usedBytes: GB });
    expect(names(events).slice(-1)).toEqual(['threshold 100']);
  });

  it('keeps a plan that continues at a lower speed active until the provider reports its end', () => {
    const slower = { ...ACTIVE, goesOn: true, usedBytes: 1.12 * GB, asOf: minute(200) };
    const { esim, events } = apply(newEsim(), [slower]);
    expect(esim).toMatchObject({ status: 'active', thresholdsCrossed: [50, 80, 100] });
    expect(names(events)).toEqual(['esim.activated', 'threshold 50', 'threshold 80', 'threshold 100']);
    const stopped = apply(esim, [{ ...slower, status: 'depleted', asOf: minute(300) }]);
    expect(stopped).toMatchObject({ esim: { status: 'depleted' }, events: [] });
  });

  it('takes a pass that has stopped for the day for neither used up nor at its end', () => {
    const pass = { ...ACTIVE, goesOn: true, totalBytes: null };
    const stopped = apply(newEsim({ days: 7, totalBytes: 7 * GB }), [
      { ...pass, status: 'depleted', usedBytes: GB, asOf: minute(200) },
    ]);
    expect(stopped.esim).toMatchObject({ status: 'depleted', usedBytes: GB, thresholdsCrossed: [] });
    const extended = newEsim({ days: 1, totalBytes: 7 * GB, toppedUpAt: minute(1) });
    const stoppedToo = apply(extended, [{ ...pass, status: 'depleted', usedBytes: GB, asOf: minute(200) }]);
    expect(stoppedToo.esim).toMatchObject({ usedBytes: GB, thresholdsCrossed: [] });
    const nextDay = apply(stopped.esim, [{ ...pass, usedBytes: 1.5 * GB, asOf: minute(1_700) }]);
    expect(nextDay.esim).toMatchObject({ status: 'active', usedBytes: 1.5 * GB, totalBytes: 7 * GB });
  });

  it('never announces levels of an unlimited plan', () => {
    const start = newEsim({ unlimited: true, totalBytes: null });
    const { esim, events } = apply(start, [{ ...ACTIVE, usedBytes: 50 * GB, totalBytes: null }]);
    expect(esim).toMatchObject({ status: 'active', usedBytes: 50 * GB, thresholdsCrossed: [] });
    expect(names(events)).toEqual(['esim.activated']);
  });

  it('distinguishes an end without use from an end of the validity', () => {
    const unused = apply(newEsim(), [{ status: 'expired', asOf: minute(90_000) }]);
    expect(unused.events[0]!.data).toMatchObject({ reason: 'never_used' });
    const used = apply(newEsim(), [{ status: 'expired', usedBytes: 5, asOf: minute(90_000) }]);
    expect(names(used.events)).toEqual(['esim.activated', 'esim.expired']);
    expect(used.events[1]!.data).toMatchObject({ reason: 'validity_ended' });
  });

  it('follows a suspension and its end, and keeps what was reached in the meantime', () => {
    const { esim, events } = apply(newEsim(), [
      { ...ACTIVE, asOf: minute(2) },
      { ...ACTIVE, status: 'suspended', usedBytes: 0.5 * GB, asOf: minute(3) },
    ]);
    expect(esim.status).toBe('suspended');
    expect(names(events)).toEqual(['esim.activated', 'threshold 50', 'esim.suspended']);
    const after = apply(esim, [{ ...ACTIVE, asOf: minute(4) }]);
    expect(after.esim.status).toBe('active');
    expect(names(after.events)).toEqual(['esim.resumed']);
  });

  it('cancels with one event, however often it is repeated', () => {
    const { esim, events } = apply(newEsim(), [{ status: 'canceled' }, { status: 'canceled' }]);
    expect(esim.status).toBe('canceled');
    expect(names(events)).toEqual(['esim.revoked']);
  });

  it('keeps the known profile status when the provider reports none', () => {
    expect(apply(newEsim(), [{ profileStatus: 'unknown' }]).esim.profileStatus).toBe('released');
  });

  it('treats a time from a fast clock as now', () => {
    const { esim } = apply(newEsim(), [{ ...ACTIVE, asOf: minute(900_000) }], minute(500));
    expect(esim.usageAsOf).toEqual(minute(500));
  });
});

describe('a reading around a top-up', () => {
  const spent = apply(newEsim(), [{ status: 'depleted', usedBytes: GB, asOf: minute(100) }]).esim;
  const topped = {
    ...spent,
    ...observe(
      spent,
      {
        kind: 'topped_up',
        dataBytes: GB,
        validityDays: 7,
        upstreamTotalBytes: null,
        upstreamExpiresAt: null,
        queuedPackageId: null,
      },
      minute(200),
    ).changes,
  };

  it('does not deplete the eSIM again if it is older than the top-up', () => {
    expect(topped).toMatchObject({ status: 'active', totalBytes: 2 * GB, thresholdsCrossed: [50] });
    const before = { status: 'depleted', usedBytes: GB, asOf: minute(201) } as const;
    const { esim, events } = apply(topped, [before, { ...before, status: 'expired' }]);
    expect(esim).toMatchObject({ status: 'active', usedBytes: GB, expiresAt: topped.expiresAt });
    expect(events).toEqual([]);
  });

  it('announces the levels of the new total', () => {
    const used = { ...ACTIVE, usedBytes: 1.7 * GB, totalBytes: 2 * GB, asOf: minute(400) };
    expect(names(apply(topped, [used]).events)).toEqual(['threshold 80']);
  });

  it('counts the remaining data when an ended plan has left the counters', () => {
    const used = { ...ACTIVE, usedBytes: 0.25 * GB, totalBytes: GB, asOf: minute(20_000) };
    expect(apply(topped, [used]).esim).toMatchObject({ usedBytes: 1.25 * GB, totalBytes: 2 * GB });
  });

  it('does not reach 100 percent of the old total while the top-up is not settled here', () => {
    const used = { ...ACTIVE, usedBytes: 1.2 * GB, totalBytes: 2 * GB };
    const { esim, events } = apply(newEsim(), [used]);
    expect(esim).toMatchObject({ status: 'active', totalBytes: GB });
    expect(names(events)).toEqual(['esim.activated', 'threshold 50', 'threshold 80']);
  });
});

const step = fc.record({
  status: fc.constantFrom('issued', 'active', 'active', 'depleted', 'suspended', 'ended'),
  profileStatus: fc.constantFrom('released', 'downloaded', 'installed', 'enabled', 'disabled', 'deleted'),
  usedBytes: fc.option(fc.integer({ min: 0, max: 1_100_000_000 })),
  minutesLater: fc.integer({ min: 1, max: 3_000 }),
  staleMinutes: fc.integer({ min: 0, max: 500 }),
});

/** Possible readings of one provider over an eSIM's life, including glitches and stale counters. */
const histories: fc.Arbitrary<UsageReport[]> = fc
  .record({
    namesTimes: fc.boolean(),
    end: fc.constantFrom('expired', 'canceled'),
    steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  })
  .map(({ namesTimes, end, steps }) => {
    let at = 0;
    return steps.map(({ minutesLater, staleMinutes, status, usedBytes, profileStatus }, i) => {
      at += minutesLater;
      const isInUse = status !== 'issued' || (usedBytes ?? 0) > 0;
      const times = { activatedAt: minute(7), expiresAt: minute(7 + 6 * 1440) };
      const reading = newReading({
        ...(namesTimes && isInUse ? times : {}),
        ...{ status: status === 'ended' ? end : status, profileStatus, usedBytes },
        // Unique times, so that only repeated readings tie.
        asOf: new Date(minute(Math.max(0, at - staleMinutes)).getTime() + i),
      });
      return { reading, source: i % 2 ? 'callback' : 'poll', askedAt: minute(at) };
    });
  });

const disorders = histories.chain((history) =>
  fc
    .array(fc.nat({ max: history.length - 1 }), { maxLength: 6 })
    .chain((doubled) =>
      fc.shuffledSubarray([...history, ...doubled.map((i) => history[i]!)], {
        minLength: history.length + doubled.length,
      }),
    )
    .map((disorder) => ({ history, disorder })),
);

describe('a sequence of readings in any order, duplicated and delayed', () => {
  it.each([
    ['a plan with a total', newEsim()],
    ['an unlimited plan', newEsim({ unlimited: true, totalBytes: null })],
    ['a topped-up eSIM', newEsim({ totalBytes: 2 * GB, toppedUpAt: minute(900) })],
  ])('leads to the same state and sends each event at most once: %s', (_name, start) => {
    fc.assert(
      fc.property(disorders, fc.integer({ min: 0, max: 50_000 }), ({ history, disorder }, delay) => {
        const inOrder = apply(start, history);
        const late = apply(start, disorder, minute(100_000 + delay));
        expect(late.esim).toEqual(inOrder.esim);
        for (const { events } of [inOrder, late]) {
          const isChange = (name: string) => name === 'esim.suspended' || name === 'esim.resumed';
          const once = names(events).filter((name) => !isChange(name));
          expect(new Set(once).size).toBe(once.length);
          // Each suspension is announced once, and so is its end.
          const changes = names(events).filter(isChange);
          expect(changes).toEqual(changes.map((_, i) => (i % 2 === 0 ? 'esim.suspended' : 'esim.resumed')));
        }
        expect(late.esim.usedBytes).toBeGreaterThanOrEqual(start.usedBytes);
      }),
      { numRuns: 2_000 },
    );
  });
});
