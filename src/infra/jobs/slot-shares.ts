import type { Mode } from '../../common/mode.js';

/** Whose jobs a group has: fairness is between pairs of partner and mode (D41). */
export interface GroupOwner {
  /** Of the pair. */
  readonly id: string;
  readonly mode: Mode;
}

/** How long a group's jobs take: nobody knows, all end in time, or the last ones do not. */
export type Pace = 'new' | 'fast' | 'slow';

/** What the shares know of a group. `SlotShares` alone writes it. */
export interface GroupSlots {
  taken: number;
  pace: Pace;
  owner: GroupOwner | null;
}

export interface SlotSharesOptions {
  readonly concurrencyPerGroup: number;
  /** Slots of the process. */
  readonly concurrency: number;
  /** Of the slots, how much one owner may hold in all: a part of 1. It shrinks with what is free. */
  readonly ownerShare: number;
  /** Of the slots, how much is kept for owners that hold none: a part of 1. */
  readonly keptForOthers: number;
  /** Whether slow groups are kept to a part of the slots; else all count as fast and may use every slot. */
  readonly separatesSlow: boolean;
}

/** Of what an owner may hold, how much is kept for its groups that hold none. */
const KEPT_FOR_OTHER_GROUPS = 1 / 2;
/** Of what its owner's other groups leave beside that, how much a group may hold. */
const GROUP_SHARE = 1 / 2;
/** Of any part, how much Sandbox may hold: the rest waits for Live (D41). */
const SANDBOX_PART = 1 / 2;
/** D42: half of the slots are out of reach of slow groups, and of new ones, which may turn out to be slow. */
const FAST_PART = 1 / 2;
const NOT_FAST_PART = 1 / 2;
/** So that a new group finds a slot beside the slow ones. */
const SLOW_PART = 1 / 4;

interface Part {
  readonly size: number;
  readonly free: number;
}

const ALL: readonly Pace[] = ['new', 'fast', 'slow'];

/**
 * Divides the slots of a process among groups (D34, D41, D42). What an owner may hold shrinks with what is free, and
 * some slots are an owner's first or nobody's: jobs that hang never give back what they took first. Among the groups of
 * an owner it is the same. A group that becomes slow takes its slots along into the slow part, and its jobs count
 * against its owner wherever they are.
 */
export class SlotShares {
  private readonly used: Record<Pace, Record<Mode, number>> = {
    new: { live: 0, sandbox: 0 },
    fast: { live: 0, sandbox: 0 },
    slow: { live: 0, sandbox: 0 },
  };
  private readonly ofOwner = new Map<string, number>();
  /** By owner and pace. */
  private readonly ofOwnerAndPace = new Map<string, number>();

  constructor(private readonly options: SlotSharesOptions) {}

  /** How many more slots the group may take now. */
  roomFor(group: GroupSlots): number {
    const { free, size } = this.partOf(modeOf(group), group.pace);
    const ofGroup = this.options.concurrencyPerGroup - group.taken;
    if (free < 1 || ofGroup < 1) return 0;
    // Whose it is, its first claim says.
    if (group.owner === null) return group.taken === 0 ? 1 : 0;
    const bound = this.boundOfOwner(free, size);
    const left = bound - (this.ofOwner.get(group.owner.id) ?? 0);
    // What the owner's hanging groups hold elsewhere must not keep its healthy one from a first slot of this part.
    if (left < 1) return this.holdsNone(group.owner.id, group.pace) ? 1 : 0;
    const shared = left + group.taken - bound * KEPT_FOR_OTHER_GROUPS;
    const boundOfGroup = Math.max(1, shared * GROUP_SHARE);
    return Math.max(0, Math.min(ofGroup, Math.floor(boundOfGroup - group.taken), Math.floor(left), free));
  }

  /** Whether any group of this mode and pace could have a slot: without one, nobody asks each of them. */
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

  /** The group's slots count where groups of this pace and owner belong from now on. */
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

  /** How much an owner may hold when so much is free of its part: all of its share when nobody else has any. */
  private boundOfOwner(free: number, size: number): number {
    const { concurrency, ownerShare, keptForOthers } = this.options;
    const shared = size * (1 - keptForOthers);
    return Math.max(1, concurrency * ownerShare * ((free - size + shared) / shared));
  }

  /** The part of the slots that groups of this mode and pace may use: its size, and what is free of it. */
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

/** A group whose owner is not known yet may be Live. */
export function modeOf(group: Pick<GroupSlots, 'owner'>): Mode {
  return group.owner?.mode ?? 'live';
}
