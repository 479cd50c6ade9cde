import type { Mode } from '../../common/mode.js';

/** Owner of a group's jobs: slots are shared fairly between pairs of partner and mode (D41). */
export interface GroupOwner {
  /** Id of the pair. */
  readonly id: string;
  readonly mode: Mode;
}

/** Speed of a group's jobs: unknown, all in time, or the latest ones too slow. */
export type Pace = 'new' | 'fast' | 'slow';

/** State of a group, written only by `SlotShares`. */
export interface GroupSlots {
  taken: number;
  pace: Pace;
  owner: GroupOwner | null;
}

export interface SlotSharesOptions {
  readonly concurrencyPerGroup: number;
  readonly concurrencyPerSandboxGroup?: number;
  /** Number of slots in the process. */
  readonly concurrency: number;
  /** Maximum share of the slots for one owner. It shrinks with the number of free slots. */
  readonly ownerShare: number;
  /** Share of the slots reserved for owners without any. */
  readonly keptForOthers: number;
  /**
   * Whether slow groups are limited to a part of the slots; otherwise all groups count as fast and may use every slot.
   */
  readonly separatesSlow: boolean;
}

/** Share of an owner's slots that is reserved for its groups without any. */
const KEPT_FOR_OTHER_GROUPS = 1 / 2;
/** Maximum share of one group in the slots that its owner's other groups leave free. */
const GROUP_SHARE = 1 / 2;
/** Maximum share of Sandbox in any part: the rest is reserved for Live. */
const SANDBOX_PART = 1 / 2;
/** Half of the slots are closed to slow groups, and to new ones, which may turn out to be slow. */
const FAST_PART = 1 / 2;
const NOT_FAST_PART = 1 / 2;
/** Leaves room for a new group alongside the slow ones. */
const SLOW_PART = 1 / 4;

interface Part {
  readonly size: number;
  readonly free: number;
}

const ALL: readonly Pace[] = ['new', 'fast', 'slow'];

/**
 * Divides a process's slots among groups (D34, D41, D42). An owner's limit shrinks with the number of free slots,
 * and some slots are reserved for owners without any, because hanging jobs never release what they took first. The same
 * rules apply to the groups of an owner. A group that becomes slow moves its slots to the slow part, and its jobs count
 * against its owner in every part.
 */
export class SlotShares {
  private readonly used: Record<Pace, Record<Mode, number>> = {
    new: { live: 0, sandbox: 0 },
    fast: { live: 0, sandbox: 0 },
    slow: { live: 0, sandbox: 0 },
  };
  private readonly ofOwner = new Map<string, number>();
  /** Keyed by owner and pace. */
  private readonly ofOwnerAndPace = new Map<string, number>();

  constructor(private readonly options: SlotSharesOptions) {}

  /** Number of slots that the group may still take now. */
  roomFor(group: GroupSlots): number {
    const { free, size } = this.partOf(modeOf(group), group.pace);
    const ofGroup = this.limitPerGroup(modeOf(group)) - group.taken;
    if (free < 1 || ofGroup < 1) return 0;
    // Its first claim reveals its owner.
    if (group.owner === null) return group.taken === 0 ? 1 : 0;
    const bound = this.boundOfOwner(free, size);
    const left = bound - (this.ofOwner.get(group.owner.id) ?? 0);
    // Hanging groups elsewhere must not keep the owner's healthy group from a first slot of this part.
    if (left < 1) return this.holdsNone(group.owner.id, group.pace) ? 1 : 0;
    const shared = left + group.taken - bound * KEPT_FOR_OTHER_GROUPS;
    const boundOfGroup = Math.max(1, shared * GROUP_SHARE);
    return Math.max(0, Math.min(ofGroup, Math.floor(boundOfGroup - group.taken), Math.floor(left), free));
  }

  /** Whether any group of this mode and pace could get a slot; if not, single groups need not be checked. */
  hasFreeFor(mode: Mode, pace: Pace): boolean {
    return this.partOf(mode, pace).free >= 1;
  }

  take(group: GroupSlots, count: number): void {
    this.count(group, count);
    group.taken += count;
  }

  giveBack(group: GroupSlots, count: number): void {
    this.count(group, -count);
    group.taken -= count;
  }

  /** Sets the group's pace and owner, and moves its slots accordingly. */
  describe(group: GroupSlots, known: Partial<Pick<GroupSlots, 'pace' | 'owner'>>): void {
    this.count(group, -group.taken);
    Object.assign(group, known);
    this.count(group, group.taken);
  }

  private count(group: GroupSlots, count: number): void {
    if (count === 0) return;
    this.used[group.pace][modeOf(group)] += count;
    if (!group.owner) return;
    const { id } = group.owner;
    add(this.ofOwner, id, count);
    add(this.ofOwnerAndPace, `${group.pace} ${id}`, count);
  }

  private holdsNone(owner: string, pace: Pace): boolean {
    return this.options.separatesSlow && pace === 'fast' && !this.ofOwnerAndPace.has(`${pace} ${owner}`);
  }

  private limitPerGroup(mode: Mode): number {
    const { concurrencyPerGroup, concurrencyPerSandboxGroup = concurrencyPerGroup } = this.options;
    return mode === 'live' ? concurrencyPerGroup : concurrencyPerSandboxGroup;
  }

  /** An owner's limit at this number of free slots in its part. It is the full share while no other owner has any. */
  private boundOfOwner(free: number, size: number): number {
    const { concurrency, ownerShare, keptForOthers } = this.options;
    const shared = size * (1 - keptForOthers);
    return Math.max(1, concurrency * ownerShare * ((free - size + shared) / shared));
  }

  /** The part of the slots open to groups of this mode and pace: its size and its free slots. */
  private partOf(mode: Mode, pace: Pace): Part {
    const part = (share: number, paces: readonly Pace[]): Part => this.part(share, paces, mode);
    const overall = part(1, ALL);
    if (!this.options.separatesSlow) return overall;
    if (pace === 'fast') return narrower(overall, part(FAST_PART, ['fast']));
    const notFast = narrower(overall, part(NOT_FAST_PART, ['new', 'slow']));
    return pace === 'new' ? notFast : narrower(notFast, part(SLOW_PART, ['slow']));
  }

  private part(share: number, paces: readonly Pace[], mode: Mode): Part {
    const size = Math.max(1, Math.floor(this.options.concurrency * share));
    const sandbox = this.sumOf(paces, 'sandbox');
    const all = { size, free: size - sandbox - this.sumOf(paces, 'live') };
    if (mode === 'live') return all;
    const ofSandbox = Math.max(1, Math.floor(size * SANDBOX_PART));
    return narrower(all, { size: ofSandbox, free: ofSandbox - sandbox });
  }

  private sumOf(paces: readonly Pace[], mode: Mode): number {
    return paces.reduce((sum, pace) => sum + this.used[pace][mode], 0);
  }
}

function add(counts: Map<string, number>, key: string, count: number): void {
  const sum = (counts.get(key) ?? 0) + count;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}

function narrower(outer: Part, inner: Part): Part {
  return { size: inner.size, free: Math.min(outer.free, inner.free) };
}

/** A group with an unknown owner may be Live. */
export function modeOf(group: Pick<GroupSlots, 'owner'>): Mode {
  return group.owner?.mode ?? 'live';
}
