import type { Mode } from '../../common/mode.js';
import { type GroupSlots, modeOf, type Pace } from './slot-shares.js';

/** Groups that finish in time come before others (D42). */
const PACE_ORDER: readonly Pace[] = ['fast', 'new', 'slow'];
/**
 * Every fourth time, the group of its mode that has waited longest is next, so that none waits forever behind faster
 * ones.
 */
const MAX_WAITING_EVERY = 4;

/** Free slots, as `SlotShares` counts them. */
export interface Room<Group> {
  /** Whether any group of this mode and pace could have a slot. */
  hasFreeFor(mode: Mode, pace: Pace): boolean;
  roomFor(group: Group): number;
}

/**
 * Groups that want to claim, by mode and pace, longest waiting first. Thousands of hanging groups may wait here, so the
 * time to find the next one must not grow with their number. A mode and pace without a free slot costs one check. In a
 * mode and pace with a free slot, a group is skipped only if its owner already holds slots.
 */
export class WaitingGroups<Group extends GroupSlots> {
  private readonly lists = new Map<string, Set<Group>>();
  /** In the order in which they began to wait. */
  private readonly places = new Map<Group, { readonly number: number; readonly list: string }>();
  private begun = 0;
  private taken = 0;

  constructor(private readonly room: Room<Group>) {}

  /** A group that is already waiting keeps its place. */
  add(group: Group): void {
    if (this.places.has(group)) return;
    const list = listOf(modeOf(group), group.pace);
    this.places.set(group, { number: this.begun++, list });
    this.listNamed(list).add(group);
  }

  has(group: Group): boolean {
    return this.places.has(group);
  }

  /** Whether a group of this mode waits for its first slot. Passes at most as many groups as there are slots. */
  hasWithoutSlot(mode: Mode): boolean {
    return PACE_ORDER.some((pace) => {
      for (const group of this.lists.get(listOf(mode, pace)) ?? []) if (group.taken === 0) return true;
      return false;
    });
  }

  /** Call this when the group's pace or owner has changed. The group keeps its place by waiting time. */
  reorder(group: Group): void {
    const place = this.places.get(group);
    const list = listOf(modeOf(group), group.pace);
    if (!place || place.list === list) return;
    this.listNamed(place.list).delete(group);
    this.places.set(group, { ...place, list });
    const ordered = [...this.listNamed(list), group].sort((a, b) => this.numberOf(a) - this.numberOf(b));
    this.lists.set(list, new Set(ordered));
  }

  /**
   * Removes and returns the next group of this mode that has room: groups that finish in time before others, then the
   * one with the fewest running jobs, then the longest waiting.
   */
  takeNext(mode: Mode): Group | null {
    const byRank = (this.taken + 1) % MAX_WAITING_EVERY !== 0;
    const next = byRank ? this.firstByRank(mode) : this.longestWaiting(mode);
    if (!next) return null;
    this.listNamed(this.places.get(next)!.list).delete(next);
    this.places.delete(next);
    this.taken++;
    return next;
  }

  private firstByRank(mode: Mode): Group | null {
    for (const list of this.openLists(mode)) {
      let first: Group | null = null;
      for (const group of list) {
        if (first && group.taken >= first.taken) continue;
        if (this.room.roomFor(group) > 0) first = group;
        if (first?.taken === 0) break;
      }
      if (first) return first;
    }
    return null;
  }

  private longestWaiting(mode: Mode): Group | null {
    let longest: Group | null = null;
    for (const list of this.openLists(mode)) {
      for (const group of list) {
        if (longest && this.numberOf(longest) < this.numberOf(group)) break;
        if (this.room.roomFor(group) <= 0) continue;
        longest = group;
        break;
      }
    }
    return longest;
  }

  private openLists(mode: Mode): readonly ReadonlySet<Group>[] {
    return PACE_ORDER.filter((pace) => {
      const list = this.lists.get(listOf(mode, pace));
      return list !== undefined && list.size > 0 && this.room.hasFreeFor(mode, pace);
    }).map((pace) => this.listNamed(listOf(mode, pace)));
  }

  private numberOf(group: Group): number {
    return this.places.get(group)!.number;
  }

  private listNamed(name: string): Set<Group> {
    let list = this.lists.get(name);
    if (!list) this.lists.set(name, (list = new Set()));
    return list;
  }
}

function listOf(mode: Mode, pace: Pace): string {
  return `${mode} ${pace}`;
}
