import { type GroupSlots, modeOf, type Pace } from './slot-shares.js';

const PACE_ORDER: Record<Pace, number> = { fast: 0, new: 1, slow: 2 };
/** Every so many, the one of its mode that has waited longest is next: nobody waits for ever behind faster ones. */
const LONGEST_WAITING_EVERY = 4;

/** Groups that want to claim, longest waiting first. */
export class WaitingGroups<Group extends GroupSlots> {
  private readonly groups = new Set<Group>();
  private taken = 0;

  /** A group that waits already keeps its place. */
  add(group: Group): void {
    this.groups.add(group);
  }

  has(group: Group): boolean {
    return this.groups.has(group);
  }

  /**
   * Removes and answers the group to serve next, of those that have room: Live before Sandbox (D41), endpoints that
   * answer in time before others (D42), then the one with the fewest jobs under way, then the longest waiting.
   */
  takeNext(hasRoom: (group: Group) => boolean): Group | null {
    const byRank = (this.taken + 1) % LONGEST_WAITING_EVERY !== 0;
    let next: Group | null = null;
    for (const group of this.groups) {
      if (next && !precedes(group, next, byRank)) continue;
      if (hasRoom(group)) next = group;
    }
    if (!next) return null;
    this.groups.delete(next);
    this.taken++;
    return next;
  }
}

function precedes(a: GroupSlots, b: GroupSlots, byRank: boolean): boolean {
  const [modeA, modeB] = [modeOf(a), modeOf(b)];
  if (modeA !== modeB) return modeA === 'live';
  if (!byRank) return false;
  if (a.pace !== b.pace) return PACE_ORDER[a.pace] < PACE_ORDER[b.pace];
  return a.taken < b.taken;
}
