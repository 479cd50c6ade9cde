import type { GroupOwner } from './slot-shares.js';

/** The table behind a `JobRunner`: it alone says what is due, whose it is, and who holds a lease on it (D1, D40). */
export interface JobSource<Job> {
  /** Leases up to `limit` due jobs of the group, oldest due first. Must not lease one twice. */
  claim(group: string, limit: number): Promise<Claim<Job>>;
  /** The same for several groups, each of them once, in one statement; answers their claims in their order. */
  claimMany?(requests: readonly ClaimRequest[]): Promise<readonly Claim<Job>[]>;
  /** Groups after `after`, in their order, with something due that nobody holds: their notification was lost (D1). */
  listGroupsDue(after: string, limit: number): Promise<readonly string[]>;
  /** Whose the group's jobs are (D41); null as long as nothing has said so. Without it each group is its own owner. */
  ownerOf?(group: string): GroupOwner | null;
  /** Reads whose these groups are, so that `ownerOf` knows; of a group that is not there it stays null. */
  learnOwners?(groups: readonly string[]): Promise<void>;
  /** Extends those of the leases that are still held by this process. Called with no jobs, too. */
  renew(jobs: readonly Job[]): Promise<void>;
}

/** Up to `limit` jobs of a group. */
export interface ClaimRequest {
  readonly group: string;
  readonly limit: number;
}

/** What one claim from a group came to. */
export interface Claim<Job> {
  readonly items: readonly Job[];
  /** Milliseconds until the next claim is worth it; 0 or less for now; null when no time is known to this process. */
  readonly nextDueInMs: number | null;
  /** Something due may be left for which the end of a job makes room: then such an end claims again. */
  readonly more: boolean;
}

/** How a job ended. */
export interface JobEnd {
  /** It may have made something due in its group, now or later: the group claims again. */
  readonly refetch: boolean;
  /** Its time tells how long the group's jobs take; not when it was given back, or found interrupted. */
  readonly wasTimed?: boolean;
}

/**
 * Does one job and records its outcome. A stop aborts `control` with `JobInterrupted`. What it throws is logged; the
 * lease then lapses.
 */
export type RunJob<Job> = (job: Job, control: AbortController) => Promise<JobEnd>;
