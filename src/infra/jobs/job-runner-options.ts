import type { Logger } from 'pino';
import type { Concerns } from '../tracing/index.js';

/** How to run jobs of one kind: slots, times in milliseconds, and callbacks. */
export interface JobRunnerOptions<Job> {
  /** Name in the log: `orders`. */
  readonly name: string;
  /** Maximum concurrent jobs per group in this process: a hanging group fills only its own part (D34). */
  readonly concurrencyPerGroup: number;
  /** The same for a Sandbox group. Default: `concurrencyPerGroup`. */
  readonly concurrencyPerSandboxGroup?: number;
  /** Maximum concurrent jobs in this process, over all groups. */
  readonly concurrency: number;
  /**
   * Maximum Sandbox jobs of a group that this process has leased and that wait for a slot; default 0. Then claims are
   * few and large, and jobs may be created as claimed although no slot is free.
   */
  readonly readyPerGroup?: number;
  /** Maximum share of the slots for one owner; default 1 (D41, D42). */
  readonly ownerShare?: number;
  /** Share of the slots reserved for owners without any; default none. */
  readonly keptForOthers?: number;
  /** A job that runs longer marks its group as slow, which excludes it from half of the slots; default: never. */
  readonly slowAfterMs?: number;
  readonly sweepIntervalMs: number;
  /** The heartbeat renews three times per lease, so that two beats may be lost. */
  readonly leaseMs: number;
  /** Time that shutdown gives running jobs to end. */
  readonly drainMs: number;
  /** Time for interrupted jobs to record their interruption; 0: they are abandoned at once. */
  readonly recordMs: number;
  readonly logger: Logger;
  /** The subject of a job, for the log. */
  concernsOf?(job: Job): Concerns;
  /** Schedules a notification of the group in the queue. */
  notifyAt(group: string, at: Date): void;
}
