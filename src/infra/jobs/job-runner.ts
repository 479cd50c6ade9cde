import type { Logger } from 'pino';
import { endsWithin } from '../../common/ends-within.js';
import { Sweeper } from '../sweeps.js';
import { ClaimScheduler } from './claim-scheduler.js';
import type { Claim, JobSource } from './job-source.js';
import { Semaphore } from './semaphore.js';

/** The reason with which a stop aborts the jobs that outlast its time. */
export class JobInterrupted extends Error {
  override readonly name = 'JobInterrupted';
}

export interface JobRunnerOptions {
  /** As it appears in the log: `orders`. */
  readonly name: string;
  /** Jobs of one group under way at once in this process: a hanging group fills its own part only (D34). */
  readonly concurrencyPerGroup: number;
  /** Jobs under way at once in this process, over all groups. */
  readonly concurrency: number;
  readonly sweepIntervalMs: number;
  /** The heartbeat renews every third of it, so that two beats may be lost. */
  readonly leaseMs: number;
  /** How long a stop lets jobs end by themselves. */
  readonly drainMs: number;
  /** How long it waits after that for jobs that it has interrupted to record so; 0: it leaves them at once. */
  readonly recordMs: number;
  readonly logger: Logger;
  /** Asks the queue for a notification of the group at that time. */
  notifyAt(group: string, at: Date): void;
}

/**
 * Does one job and records its outcome; true (refetch) when that may have made something due in its group, now or
 * later. A stop aborts `control` with `JobInterrupted`. What it throws is logged; the lease then lapses.
 */
export type RunJob<Job> = (job: Job, control: AbortController) => Promise<boolean>;

interface Group {
  running: number;
  claiming: boolean;
  /** A notification came during the claim. */
  again: boolean;
  /** `Claim.more` of the last claim. */
  more: boolean;
}

const GROUPS_PER_SWEEP = 1_000;
/** More claims at once would take all connections of the pool, also from the heartbeat and the outcomes. */
const CLAIMS_AT_ONCE = 6;

/**
 * Works off the jobs of groups (an endpoint's deliveries, a partner's orders). A notification claims from the group;
 * jobs run concurrently, and more are claimed as they end. The sweep finds groups whose notification was lost, the
 * heartbeat keeps the leases of what is under way, and the scheduler claims again when the group has something due.
 */
export class JobRunner<Job> {
  private readonly groups = new Map<string, Group>();
  /** Groups that found no room in the process. */
  private readonly waiting = new Set<string>();
  private readonly tasks = new Set<Promise<void>>();
  private readonly held = new Map<Job, AbortController>();
  private readonly claims = new Semaphore(CLAIMS_AT_ONCE);
  private readonly scheduler: ClaimScheduler;
  private readonly sweeper: Sweeper;
  private readonly heartbeat: Sweeper;
  /** Jobs under way and those that a claim under way may bring. */
  private reserved = 0;
  private sweptTo = '';
  private stopping: Promise<void> | null = null;

  constructor(
    private readonly source: JobSource<Job>,
    private readonly run: RunJob<Job>,
    private readonly options: JobRunnerOptions,
  ) {
    const { name, sweepIntervalMs, leaseMs, logger } = options;
    this.scheduler = new ClaimScheduler({
      claim: (group) => this.notify(group),
      notifyAt: (group, at) => options.notifyAt(group, at),
    });
    this.sweeper = new Sweeper({
      name: `${name}.due`,
      intervalMs: sweepIntervalMs,
      logger,
      run: () => this.sweep(),
    });
    this.heartbeat = new Sweeper({
      name: `${name}.leases`,
      intervalMs: leaseMs / 3,
      logger,
      run: async () => (this.held.size > 0 ? source.renew([...this.held.keys()]) : undefined),
    });
  }

  /** Jobs under way in this process. */
  get inFlight(): number {
    return this.held.size;
  }

  /** From now on nothing more is claimed. */
  get isStopping(): boolean {
    return this.stopping !== null;
  }

  start(): void {
    this.sweeper.start();
    this.heartbeat.start();
  }

  /** Claims from the group; returns at once, so that a slow group never holds a worker of the queue. */
  notify(name: string): void {
    if (this.isStopping) return;
    const group = this.groups.get(name) ?? { running: 0, claiming: false, again: false, more: false };
    this.groups.set(name, group);
    if (group.claiming) group.again = true;
    else this.track(this.fill(name, group));
  }

  /**
   * Claims nothing more and lets jobs end for `drainMs`, their leases kept alive; interrupts the rest. Every call
   * answers the same stop. Never rejects.
   */
  stop(): Promise<void> {
    return (this.stopping ??= this.drain().catch((error: unknown) => {
      const { name, logger } = this.options;
      logger.warn({ event: 'jobs.drain_failed', jobs: name, err: error }, 'leases will lapse');
    }));
  }

  private async drain(): Promise<void> {
    const { name, drainMs, recordMs, logger } = this.options;
    this.scheduler.stop();
    await this.sweeper.stop();
    const ended = this.allEnded();
    if (!(await endsWithin(ended, drainMs))) {
      logger.warn({ event: 'jobs.interrupted', jobs: name, count: this.held.size }, 'stopping');
      for (const control of this.held.values()) control.abort(new JobInterrupted());
      if (recordMs > 0) await endsWithin(ended, recordMs);
    }
    await this.heartbeat.stop();
  }

  private async allEnded(): Promise<void> {
    while (this.tasks.size > 0) await Promise.allSettled(this.tasks);
  }

  /** Finds what is due without a notification: a lost job, a lost queue, a dead process (D1). Goes round the groups. */
  private async sweep(): Promise<void> {
    const found = await this.source.listGroupsDue(this.sweptTo, GROUPS_PER_SWEEP);
    this.sweptTo = found.length < GROUPS_PER_SWEEP ? '' : (found.at(-1) ?? '');
    for (const group of found) this.notify(group);
  }

  /** Claims from the group until it has nothing due, or no room is left for more. */
  private async fill(name: string, group: Group): Promise<void> {
    group.claiming = true;
    let nextDueInMs: number | null = null;
    try {
      do {
        group.again = false;
        const limit = this.reserve(name, group);
        if (limit === 0) break;
        const claim = await this.claim(name, limit);
        this.giveBack(limit - claim.items.length);
        group.more = claim.more;
        for (const job of claim.items) this.begin(name, group, job);
        nextDueInMs = claim.nextDueInMs;
        if (claim.items.length === limit) group.again = true;
      } while (group.again && !this.isStopping);
      if (nextDueInMs !== null && !this.isStopping) this.scheduler.schedule(name, nextDueInMs);
    } finally {
      group.claiming = false;
      if (group.again && !this.isStopping) this.notify(name);
      else this.forgetIfIdle(name, group);
    }
  }

  /** How many jobs of the group have room. They are reserved at once: other groups claim at the same time. */
  private reserve(name: string, group: Group): number {
    const ofGroup = this.options.concurrencyPerGroup - group.running;
    const limit = Math.max(0, Math.min(ofGroup, this.options.concurrency - this.reserved));
    if (limit === 0 && ofGroup > 0) this.waiting.add(name);
    this.reserved += limit;
    return limit;
  }

  private async claim(name: string, limit: number): Promise<Claim<Job>> {
    try {
      return await this.claims.run(() => this.source.claim(name, limit));
    } catch (error) {
      this.options.logger.warn(
        { event: 'jobs.claim_failed', jobs: this.options.name, group: name, err: error },
        'claim failed; the sweep tries again',
      );
      return { items: [], nextDueInMs: null, more: true };
    }
  }

  private begin(name: string, group: Group, job: Job): void {
    const control = new AbortController();
    this.held.set(job, control);
    group.running++;
    this.track(
      this.runToEnd(name, job, control).then((refetch) => {
        this.held.delete(job);
        group.running--;
        this.reserved--;
        // A claim that is under way may have read the table before this end.
        if (refetch || group.more || group.claiming) this.notify(name);
        else this.forgetIfIdle(name, group);
        this.notifyWaiting(1);
      }),
    );
  }

  /** Never rejects. */
  private async runToEnd(name: string, job: Job, control: AbortController): Promise<boolean> {
    try {
      return await this.run(job, control);
    } catch (error) {
      this.options.logger.error(
        { event: 'jobs.run_failed', jobs: this.options.name, group: name, err: error },
        'job failed; its lease will lapse',
      );
      return true;
    }
  }

  /** Room that a claim did not need goes to groups that found none: they wait for nothing else. */
  private giveBack(room: number): void {
    this.reserved -= room;
    this.notifyWaiting(room);
  }

  private notifyWaiting(count: number): void {
    for (let left = count; left > 0; left--) {
      const [name] = this.waiting;
      if (name === undefined) return;
      this.waiting.delete(name);
      this.notify(name);
    }
  }

  private forgetIfIdle(name: string, group: Group): void {
    if (group.running === 0 && !group.claiming && !this.waiting.has(name)) this.groups.delete(name);
  }

  private track(task: Promise<void>): void {
    this.tasks.add(task);
    void task.finally(() => this.tasks.delete(task));
  }
}
