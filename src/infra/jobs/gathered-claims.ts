import type { Mode } from '../../common/mode.js';
import { Batcher } from '../batcher.js';
import type { Claim, ClaimRequest, JobSource } from './job-source.js';

/** Groups of one statement at most: it holds what it claims of the first until it has claimed of the last. */
const MOST_GROUPS = 24;
/** Of each mode. So a claim that waits for something does not hold up all others. */
const STATEMENTS_AT_ONCE = 2;
/** Where each group is a statement: more would take all connections of the pool, also from heartbeat and outcomes. */
const SINGLE_CLAIMS_AT_ONCE = 6;
/** Of the claims under way, how many may be Sandbox's: the rest waits for Live (D41). */
const SANDBOX_PART = 1 / 2;
const MOST_OWNERS = 500;

interface WaitingClaim<Job> extends ClaimRequest {
  resolve(claim: Claim<Job>): void;
  reject(error: unknown): void;
}

interface WaitingOwner {
  readonly group: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Claims of many groups: the first leaves in the turn in which it is asked for; those that are asked for while others
 * are under way leave as one statement, where the source has one (D51). One that fails fails no other (D43). Live and
 * Sandbox are never in one statement, and each has statements of its own: what Sandbox waits for delays nothing that is
 * paid for (D41).
 */
export class GatheredClaims<Job> {
  private readonly atOnce: number;
  private readonly underWay: Record<Mode, number> = { live: 0, sandbox: 0 };
  private readonly batchers: Readonly<Record<Mode, Batcher<WaitingClaim<Job>>>> | null;
  private readonly owners = new Batcher<WaitingOwner>({
    maxItems: MOST_OWNERS,
    gather: 'microtask',
    handle: async (waiting) => {
      await this.source.learnOwners?.(waiting.map(({ group }) => group));
      for (const one of waiting) one.resolve();
    },
    failed: (one, error) => one.reject(error),
  });

  constructor(private readonly source: JobSource<Job>) {
    const isGathering = source.claimMany !== undefined;
    this.atOnce = isGathering ? (MOST_GROUPS * STATEMENTS_AT_ONCE) / SANDBOX_PART : SINGLE_CLAIMS_AT_ONCE;
    this.batchers = isGathering ? { live: this.newBatcher(), sandbox: this.newBatcher() } : null;
  }

  /** Whether a group of this mode may be asked for now. */
  hasRoomFor(mode: Mode): boolean {
    const { live, sandbox } = this.underWay;
    return live + sandbox < this.atOnce && (mode === 'live' || sandbox < this.atOnce * SANDBOX_PART);
  }

  /** @throws what the source throws */
  async claim(group: string, limit: number): Promise<Claim<Job>> {
    let mode = this.modeOf(group);
    const counted = mode ?? 'live';
    this.underWay[counted]++;
    try {
      mode ??= await this.learnMode(group, counted);
    } catch (error) {
      this.underWay[counted]--;
      throw error;
    }
    try {
      return await this.send(mode, { group, limit });
    } finally {
      this.underWay[mode]--;
    }
  }

  private send(mode: Mode, { group, limit }: ClaimRequest): Promise<Claim<Job>> {
    const { batchers } = this;
    if (!batchers) return this.source.claim(group, limit);
    return new Promise((resolve, reject) => batchers[mode].add({ group, limit, resolve, reject }));
  }

  private modeOf(group: string): Mode | null {
    return this.source.ownerOf ? (this.source.ownerOf(group)?.mode ?? null) : 'live';
  }

  /** Reads whose the group is before its first claim, which might wait for others of its mode. */
  private async learnMode(group: string, counted: Mode): Promise<Mode> {
    await new Promise<void>((resolve, reject) => this.owners.add({ group, resolve, reject }));
    const mode = this.modeOf(group) ?? counted;
    this.underWay[counted]--;
    this.underWay[mode]++;
    return mode;
  }

  private newBatcher(): Batcher<WaitingClaim<Job>> {
    return new Batcher({
      maxItems: MOST_GROUPS,
      concurrency: STATEMENTS_AT_ONCE,
      gather: 'microtask',
      handle: async (waiting) => {
        const claims = await this.source.claimMany!(waiting);
        waiting.forEach((one, index) => one.resolve(claims[index]!));
      },
      failed: (one, error) => one.reject(error),
    });
  }
}
