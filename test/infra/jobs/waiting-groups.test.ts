import { describe, expect, it } from 'vitest';
import type { Mode } from '../../../src/common/mode.js';
import { type GroupSlots, modeOf, type Pace, SlotShares } from '../../../src/infra/jobs/slot-shares.js';
import { WaitingGroups } from '../../../src/infra/jobs/waiting-groups.js';
import { Random } from '../../../chaos/random.js';

const PACES = ['fast', 'new', 'slow'] as const;
const SLOTS = 64;

/** The slot shares of the webhook worker. */
const newShares = (): SlotShares =>
  new SlotShares({
    concurrencyPerGroup: 16,
    concurrency: SLOTS,
    ownerShare: 1 / 4,
    keptForOthers: 1 / 8,
    separatesSlow: true,
  });

const newGroup = (owner: number, mode: Mode, pace: Pace): GroupSlots => ({
  taken: 0,
  pace,
  owner: { id: `ptn_${owner}:${mode}`, mode },
});

/** Counts the requests for room. */
class CountedRoom {
  asked = 0;
  constructor(private readonly shares: SlotShares) {}

  hasFreeFor(mode: Mode, pace: Pace): boolean {
    this.asked++;
    return this.shares.hasFreeFor(mode, pace);
  }

  roomFor(group: GroupSlots): number {
    this.asked++;
    return this.shares.roomFor(group);
  }
}

/** Live before Sandbox, as the runner takes them (D41). */
function takeNext(waiting: WaitingGroups<GroupSlots>): GroupSlots | null {
  return waiting.takeNext('live') ?? waiting.takeNext('sandbox');
}

describe('a queue of 3,000 hanging groups', () => {
  it('checks for room at most once per slot, whether one slot is free or none', () => {
    const shares = newShares();
    const room = new CountedRoom(shares);
    const waiting = new WaitingGroups(room);
    const hanging = Array.from({ length: 3_000 }, (_, nth) => newGroup(nth, 'live', 'slow'));
    for (const group of hanging) waiting.add(group);
    const begun: GroupSlots[] = [];
    for (let next = takeNext(waiting); next; next = takeNext(waiting)) {
      shares.take(next, 1);
      // The group has more work, like an endpoint with a backlog.
      waiting.add(next);
      begun.push(next);
    }
    expect(begun.length).toBe(SLOTS / 4);
    room.asked = 0;
    expect(takeNext(waiting)).toBeNull();
    expect(room.asked).toBeLessThanOrEqual(PACES.length);

    for (const ended of begun) {
      shares.giveBack(ended, 1);
      room.asked = 0;
      const next = takeNext(waiting)!;
      expect(room.asked).toBeLessThanOrEqual(SLOTS);
      shares.take(next, 1);
    }
    // A fast group does not wait behind them.
    const healthy = newGroup(9_999, 'live', 'fast');
    waiting.add(healthy);
    room.asked = 0;
    expect(takeNext(waiting)).toBe(healthy);
    expect(room.asked).toBeLessThanOrEqual(2 * PACES.length);
  });
});

/**
 * A plain implementation of the rule. Every fourth group is the one of its mode that has waited longest. The others are
 * chosen by pace and active jobs.
 */
function nextByTheRule(
  groups: readonly GroupSlots[],
  shares: SlotShares,
  nth: number,
): GroupSlots | undefined {
  const isByRank = nth % 4 !== 0;
  const rank = (group: GroupSlots): number[] => [
    modeOf(group) === 'live' ? 0 : 1,
    ...(isByRank ? [PACES.indexOf(group.pace), group.taken] : []),
  ];
  const before = (a: number[], b: number[]): number =>
    a.map((each, at) => each - b[at]!).find((by) => by !== 0) ?? 0;
  return groups.filter((group) => shares.roomFor(group) > 0).toSorted((a, b) => before(rank(a), rank(b)))[0];
}

it.each([1, 2, 3, 4, 5])(
  'picks the next group by the documented rule, whatever happens meanwhile (%i)',
  (seed) => {
    const random = new Random(seed);
    const below = (most: number): number => random.between(0, most - 1);
    const shares = newShares();
    const waiting = new WaitingGroups(shares);
    const groups = Array.from({ length: 120 }, (_, nth) =>
      newGroup(nth % 40, nth % 3 === 0 ? 'sandbox' : 'live', PACES[below(3)]!),
    );
    let inOrder: GroupSlots[] = [];
    let served = 0;
    for (let step = 0; step < 4_000; step++) {
      const group = groups[below(groups.length)]!;
      const what = below(10);
      if (what < 4 && !waiting.has(group)) {
        waiting.add(group);
        inOrder.push(group);
      } else if (what < 6 && group.taken > 0) shares.giveBack(group, 1);
      else if (what < 7) {
        shares.describe(group, { pace: PACES[below(3)]! });
        waiting.reorder(group);
      } else {
        const expected = nextByTheRule(inOrder, shares, served + 1) ?? null;
        expect(takeNext(waiting)).toBe(expected);
        if (!expected) continue;
        served++;
        inOrder = inOrder.filter((each) => each !== expected);
        shares.take(expected, 1 + below(shares.roomFor(expected)));
      }
    }
    expect(served).toBeGreaterThan(300);
  },
);
