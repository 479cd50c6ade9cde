import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyLatest, type EsimEvent, subjectOf } from '../../sdk/src/index.js';

const RUNS = Number(process.env['SDK_PERMUTATIONS'] ?? 10_000);

const esim = { esim_id: 'esim_1', order_id: 'ord_1', iccid: '8910300000001234567' };
const data = { ...esim, reference: null, package_id: 'pkg_a' };
/** Events of an order, its eSIM and a top-up, in feed order. Two usage thresholds crossed at once share a version. */
const LIFE = [
  ['order.issued', { ...data, quantity_issued: 1, quantity_failed: 0, esims: [], version: 3 }],
  ['esim.activated', esim],
  [
    'esim.usage.threshold',
    { ...esim, threshold_percent: 50, used_bytes: 9, total_bytes: 10, as_of: '', version: 4 },
  ],
  [
    'esim.usage.threshold',
    { ...esim, threshold_percent: 80, used_bytes: 9, total_bytes: 10, as_of: '', version: 4 },
  ],
  ['order.topup.completed', { ...data, topup_id: 'top_1', version: 3 }],
  [
    'esim.usage.threshold',
    { ...esim, threshold_percent: 100, used_bytes: 20, total_bytes: 20, as_of: '', version: 7 },
  ],
  ['esim.expired', { ...esim, reason: 'validity_ended', version: 10 }],
].map(
  ([type, body], nth) => ({ id: `evt_${nth}`, type, created_at: '', data: body }) as unknown as EsimEvent,
);

type State = ReadonlyMap<string, EsimEvent>;
function stateAfter(
  events: readonly EsimEvent[],
  next: (known: EsimEvent | undefined, event: EsimEvent) => EsimEvent,
): State {
  const state = new Map<string, EsimEvent>();
  for (const event of events) state.set(subjectOf(event), next(state.get(subjectOf(event)), event));
  return state;
}

const ORDERED = stateAfter(LIFE, (_known, event) => event);
const arrivals = fc
  .array(fc.constantFrom(...LIFE), { maxLength: 10 })
  .chain((doubles) =>
    fc.shuffledSubarray([...LIFE, ...doubles], { minLength: LIFE.length + doubles.length }),
  );

describe('applyLatest', () => {
  it(`reaches the final state however events are ordered and repeated, in ${RUNS} cases`, () => {
    expect([...ORDERED.keys()]).toEqual(['ord_1', 'esim_1', 'top_1']);
    fc.assert(
      fc.property(arrivals, (events) => {
        expect(Object.fromEntries(stateAfter(events, applyLatest))).toEqual(Object.fromEntries(ORDERED));
      }),
      { numRuns: RUNS },
    );
  });

  it('is needed, because a handler that keeps the last arrival reaches another state', () => {
    const naive = fc.property(arrivals, (events) => {
      expect(Object.fromEntries(stateAfter(events, (_known, event) => event))).toEqual(
        Object.fromEntries(ORDERED),
      );
    });
    expect(fc.check(naive, { numRuns: 1_000 }).failed).toBe(true);
  });

  it('accepts objects of the API as well', () => {
    const older = { id: 'ord_1', version: 2, status: 'processing' };
    const newer = { id: 'ord_1', version: 3, status: 'issued' };
    expect(applyLatest(older, newer)).toBe(newer);
    expect(applyLatest(newer, older)).toBe(newer);
    expect(applyLatest(null, older)).toBe(older);
  });
});
