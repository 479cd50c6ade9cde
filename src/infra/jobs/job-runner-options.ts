import type { Logger } from 'pino';
import type { Concerns } from '../tracing/index.js';

/** How jobs of one kind are worked off: slots, times in ms, and what the runner tells others. */
export interface JobRunnerOptions<Job> {
  /** As it appears in the log: `orders`. */
  readonly name: string;
  /** Jobs of one group under way at once in this process: a hanging group fills its own part only (D34). */
  readonly concurrencyPerGroup: number;
  /** Jobs under way at once in this process, over all groups. */
  readonly concurrency: number;
  /** Of the slots, how much one owner may hold in all: a part of 1, which is the default (D41, D42). */
  readonly ownerShare?: number;
  /** Of the slots, how much is kept for owners that hold none: a part of 1; by default nothing. */
  readonly keptForOthers?: number;
  /** A job that runs longer makes its group slow, which keeps it out of half of the slots (D42); by default none does. */
  readonly slowAfterMs?: number;
  readonly sweepIntervalMs: number;
  /** The heartbeat renews every third of it, so that two beats may be lost. */
  readonly leaseMs: number;
  /** How long a stop lets jobs end by themselves. */
  readonly drainMs: number;
  /** How long it waits after that for jobs that it has interrupted to record so; 0: it leaves them at once. */
  readonly recordMs: number;
  readonly logger: Logger;
  /** Whom a job concerns, for the log. */
  concernsOf?(job: Job): Concerns;
  /** Asks the queue for a notification of the group at that time. */
  notifyAt(group: string, at: Date): void;
}
