import type { GroupOwner } from './slot-shares.js';

/** The table behind a `JobRunner`: it alone knows the due rows, their owners and their leases (D1, D40). */
export interface JobSource<Job> {
  /** Leases up to `limit` due jobs of the group, longest due first. Must not lease a job twice. */
  claim(group: string, limit: number): Promise<Claim<Job>>;
  /** Same for several distinct groups in one statement; returns their claims in order. */
  claimMany?(requests: readonly ClaimRequest[]): Promise<readonly Claim<Job>[]>;
  /** Groups after `after`, in order, with due and unleased jobs: their notification was lost. */
  listGroupsDue(after: string, limit: number): Promise<readonly string[]>;
  /** The owner of the group's jobs (D41); null while unknown. Without this method each group is its own owner. */
  ownerOf?(group: string): GroupOwner | null;
  /** Reads the owners of these groups for `ownerOf`; the owner of a group that does not exist stays null. */
  learnOwners?(groups: readonly string[]): Promise<void>;
  /** Extends the leases that this process still holds. Also called without jobs. */
  renew(jobs: readonly Job[]): Promise<void>;
}

/** Up to `limit` jobs of a group. */
export interface ClaimRequest {
  readonly group: string;
  readonly limit: number;
}

/** Result of one claim from a group. */
export interface Claim<Job> {
  readonly items: readonly Job[];
  /** Milliseconds until the next useful claim; 0 or less for now; null if unknown to this process. */
  readonly nextDueInMs: number | null;
  /** More work may be due but no slot is free; claim again when a job finishes. */
  readonly more: boolean;
}

/** Result of a job. */
export interface JobEnd {
  /** Whether the job may have made work in its group due, now or later. The group then claims again. */
  readonly refetch: boolean;
  /** Whether its duration reveals the group's speed. False if it was put back, or was found to be interrupted. */
  readonly wasTimed?: boolean;
}

/**
 * Runs one job and records its outcome. Shutdown aborts `control` with `JobInterrupted`. An error is logged; the lease
 * then lapses.
 */
export type RunJob<Job> = (job: Job, control: AbortController) => Promise<JobEnd>;
