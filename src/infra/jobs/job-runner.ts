import { setTimeout as sleep } from 'node:timers/promises';
import { endsWithin } from '../../common/time-limit.js';
import { type Mode, perMode } from '../../common/mode.js';
import { Batcher } from '../batcher.js';
import { boundedCache } from '../bounded-cache.js';
import { Sweeper } from '../sweeps.js';
import { runApart } from '../tracing/index.js';
import { ClaimScheduler } from './claim-scheduler.js';
import type { JobRunnerOptions } from './job-runner-options.js';
import type { Claim, ClaimRequest, JobEnd, JobSource, RunJob } from './job-source.js';
import { type GroupOwner, type GroupSlots, modeOf, type Pace, SlotShares } from './slot-shares.js';
import { oncePerTurn } from './once-per-turn.js';
import { WaitingGroups } from './waiting-groups.js';

/** Abort reason of jobs that are still running when the shutdown's time is over. */
export class JobInterrupted extends Error {
  override readonly name = 'JobInterrupted';
}

/** A place reserved for a job of a group. Call exactly one of the two methods, once. */
export interface Reservation<Job> {
  begin(job: Job): void;
  giveBack(): void;
}

interface Group<Job> extends GroupSlots {
  readonly name: string;
  running: number;
  /** Jobs that are being created and hold a reservation. */
  reserved: number;
  /** Jobs that are leased already and wait for a slot, oldest first. */
  readonly ready: Job[];
  /** Running jobs that have exceeded `slowAfterMs`. */
  overdue: number;
  claiming: boolean;
  /** A notification arrived, or a job ended, during the claim. */
  again: boolean;
  /** `Claim.more` of the last claim. */
  more: boolean;
}

const GROUPS_PER_SWEEP = 1_000;
/** Kept small: a statement keeps the rows of its first group locked until it has claimed for its last. */
const GROUPS_PER_CLAIM = 24;
/** Concurrent statements per mode, so that a claim that waits for a lock does not delay all others. */
const CLAIM_STATEMENTS = 2;
/**
 * Concurrent claims if each group needs its own statement. More would leave no connection for heartbeat and outcomes.
 */
const SINGLE_CLAIMS = 6;
/** Maximum share of Sandbox in the running claims (D41). */
const SANDBOX_PART = 1 / 2;
const GROUPS_PER_OWNER_STATEMENT = 500;
/** Maximum jobs in this process that are leased and wait for a slot, give or take those that are being created. */
const MAX_READY = 1_024;
/** Maximum ready jobs of one claim. The other places are for jobs that are created meanwhile. */
const MAX_READY_PER_CLAIM = 64;
/** Groups whose pace is remembered, even while they are idle. */
const PACES_KEPT = 50_000;

/**
 * Runs the jobs of groups (an endpoint's deliveries, a partner's orders). A notification triggers a claim from the
 * group. Jobs run concurrently, and more are claimed as they end. `SlotShares` limits how many jobs a group may run,
 * and `WaitingGroups` decides which group is next. The sweep finds groups whose notification was lost, the heartbeat
 * renews the leases of running jobs, and the scheduler claims again when the group has due work.
 */
export class JobRunner<Job> {
  private readonly groups = new Map<string, Group<Job>>();
  private readonly waiting: WaitingGroups<Group<Job>>;
  private readonly paces = boundedCache<Pace>(PACES_KEPT);
  private readonly shares: SlotShares;
  private readonly tasks = new Set<Promise<void>>();
  /** Jobs whose leases the heartbeat renews: the running and the ready ones. */
  private readonly held = new Map<Job, AbortController>();
  private readonly withReady = new Set<Group<Job>>();
  private readyJobs = 0;
  private readonly scheduler: ClaimScheduler;
  private readonly sweeper: Sweeper;
  private readonly heartbeat: Sweeper;
  /** Live and Sandbox have separate statements, so that neither waits for the other. */
  private readonly claims: Readonly<Record<Mode, Batcher<ClaimRequest, Claim<Job>>>>;
  private readonly claimsUnderWay: Record<Mode, number> = { live: 0, sandbox: 0 };
  private readonly maxClaims: number;
  private readonly owners: Batcher<string>;
  /** If one transaction ends several jobs, they trigger one claim instead of one each. */
  private readonly claimThisTurn = oncePerTurn(() => this.claimNext());
  private sweptTo = '';
  private stopping: Promise<void> | null = null;
  private isInterrupted = false;

  constructor(
    private readonly source: JobSource<Job>,
    private readonly run: RunJob<Job>,
    private readonly options: JobRunnerOptions<Job>,
  ) {
    const {
      name,
      sweepIntervalMs,
      leaseMs,
      logger,
      slowAfterMs,
      ownerShare = 1,
      keptForOthers = 0,
    } = options;
    this.claims = perMode(() => newClaims(source));
    this.maxClaims = source.claimMany ? (GROUPS_PER_CLAIM * CLAIM_STATEMENTS) / SANDBOX_PART : SINGLE_CLAIMS;
    this.owners = new Batcher<string>({
      maxItems: GROUPS_PER_OWNER_STATEMENT,
      gather: 'microtask',
      handle: async (groups) => source.learnOwners?.(groups),
    });
    const separatesSlow = slowAfterMs !== undefined;
    this.shares = new SlotShares({ ...options, ownerShare, keptForOthers, separatesSlow });
    this.waiting = new WaitingGroups<Group<Job>>({
      hasFreeFor: (mode, pace) => this.hasRoomToClaim(mode) && this.shares.hasFreeFor(mode, pace),
      roomFor: (group) => this.shares.roomFor(group),
    });
    this.scheduler = new ClaimScheduler({
      claim: (group) => void this.notify(group),
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
      run: () => source.renew([...this.held.keys()]),
    });
  }

  /** Number of jobs that this process runs or is about to run. */
  get inFlight(): number {
    return this.held.size;
  }

  /**
   * Reserves a slot for a job of the group that is being created, so that it can begin without a claim. If no slot is
   * free, up to `readyPerGroup` such jobs may wait for one. Null if there is no place either, or if other jobs of the
   * group come first.
   */
  reserve(name: string): Reservation<Job> | null {
    if (this.isStopping) return null;
    const group = this.groups.get(name) ?? this.newGroup(name);
    // Its jobs have all ended in this turn, and the ready ones begin at its end.
    if (group.taken === 0 && group.ready.length > 0) this.claimNext();
    const isNext = !group.more && !this.waiting.has(group);
    const slots = group.ready.length === 0 && this.shares.roomFor(group) >= 1 ? 1 : 0;
    if (!isNext || (slots === 0 && this.placesFor(group) === 0)) {
      this.forgetIfIdle(group);
      return null;
    }
    this.shares.take(group, slots);
    group.reserved++;
    return {
      begin: (job) => {
        group.reserved--;
        if (slots === 1) return runApart(() => this.begin(group, job));
        this.letWait(group, job);
        this.claimThisTurn();
      },
      giveBack: () => {
        group.reserved--;
        this.shares.giveBack(group, slots);
        this.forgetIfIdle(group);
        this.claimThisTurn();
      },
    };
  }

  /**
   * Number of jobs of the group that may still be leased without a slot. None if the group has no slot here, because
   * another process may have one, and none while another group waits for its first slot: ready jobs would keep it away.
   */
  private placesFor(group: Group<Job>): number {
    const { readyPerGroup = 0 } = this.options;
    if (readyPerGroup === 0 || modeOf(group) === 'live' || group.taken === 0) return 0;
    if (this.waiting.hasWithoutSlot('sandbox')) return 0;
    return Math.max(
      0,
      Math.min(readyPerGroup - group.ready.length - group.reserved, MAX_READY - this.readyJobs),
    );
  }

  private letWait(group: Group<Job>, job: Job): void {
    this.held.set(job, new AbortController());
    group.ready.push(job);
    this.readyJobs++;
    this.withReady.add(group);
  }

  /** Whether the group is waiting for a slot to claim. */
  isWaiting(name: string): boolean {
    const group = this.groups.get(name);
    return group !== undefined && this.waiting.has(group);
  }

  /** Whether the runner has stopped claiming. */
  get isStopping(): boolean {
    return this.stopping !== null;
  }

  start(): void {
    this.sweeper.start();
    this.heartbeat.start();
  }

  /**
   * Claims from the group once it has room. Returns at once, so that a slow group never blocks a worker of the queue.
   * False if the group has no room now or the runner is stopping: another process may claim instead.
   */
  notify(name: string): boolean {
    if (this.isStopping) return false;
    // Claimed work does not belong to the notification that triggers the claim, which may come from a call of this
    // process.
    return runApart(() => this.askFor(name));
  }

  private askFor(name: string): boolean {
    const group = this.groups.get(name) ?? this.newGroup(name);
    const hasRoom = group.claiming || this.shares.roomFor(group) > 0;
    if (group.claiming) group.again = true;
    else this.waiting.add(group);
    this.claimNext();
    return hasRoom;
  }

  /** Makes sure that the group is claimed from within `ms` milliseconds. */
  notifyWithin(name: string, ms: number): void {
    if (!this.isStopping) this.scheduler.schedule(name, ms);
  }

  /**
   * Stops claiming. Waits up to `drainMs` for running jobs and keeps renewing their leases, then interrupts the rest.
   * Repeated calls return the same promise. Never rejects.
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
      this.isInterrupted = true;
      for (const control of this.held.values()) control.abort(new JobInterrupted());
      if (recordMs > 0) await endsWithin(ended, recordMs);
    }
    await this.heartbeat.stop();
  }

  private async allEnded(): Promise<void> {
    while (this.tasks.size > 0 || (this.withReady.size > 0 && !this.isInterrupted)) {
      this.beginReady();
      await Promise.allSettled(this.tasks);
      await sleep(1);
    }
  }

  /**
   * Finds due work without a notification, after a lost job, a lost queue or a dead process (D1). Each sweep continues
   * where the previous one ended.
   */
  private async sweep(): Promise<void> {
    const found = await this.source.listGroupsDue(this.sweptTo, GROUPS_PER_SWEEP);
    this.sweptTo = found.length < GROUPS_PER_SWEEP ? '' : (found.at(-1) ?? '');
    // A group without a known mode counts as Live, so unknown Sandbox groups could take the slots of both modes.
    await this.source.learnOwners?.(found);
    for (const group of found) this.notify(group);
  }

  private newGroup(name: string): Group<Job> {
    const pace = this.paces.get(name) ?? (this.options.slowAfterMs === undefined ? 'fast' : 'new');
    const slots = { taken: 0, pace, owner: this.ownerOf(name) };
    const group = {
      ...slots,
      name,
      running: 0,
      reserved: 0,
      ready: [],
      overdue: 0,
      claiming: false,
      again: false,
      more: false,
    };
    this.groups.set(name, group);
    return group;
  }

  private ownerOf(name: string): GroupOwner | null {
    return this.source.ownerOf ? this.source.ownerOf(name) : { id: name, mode: 'live' };
  }

  /**
   * Claims for waiting Live groups, begins ready jobs, and claims for waiting Sandbox groups, as long as one of them
   * has room (D41). Called again at the end of every claim and job.
   */
  private claimNext(): void {
    this.claimWaiting('live');
    this.beginReady();
    this.claimWaiting('sandbox');
  }

  private claimWaiting(mode: Mode): void {
    while (!this.isStopping) {
      const group = this.waiting.takeNext(mode);
      if (!group) return;
      this.track(this.claimFor(group));
    }
  }

  /** Begins one job per group in turn. A group that has begun one comes last again. */
  private beginReady(): void {
    if (this.isInterrupted) return;
    for (const group of this.withReady) {
      if (!this.shares.hasFreeFor('sandbox', group.pace)) return;
      if (this.shares.roomFor(group) < 1) continue;
      this.withReady.delete(group);
      this.shares.take(group, 1);
      this.readyJobs--;
      const job = group.ready.shift()!;
      if (group.ready.length > 0) this.withReady.add(group);
      runApart(() => this.begin(group, job));
    }
  }

  /** Never rejects. */
  private async claimFor(group: Group<Job>): Promise<void> {
    const slots = this.shares.roomFor(group);
    // Taken now, because other groups claim concurrently.
    this.shares.take(group, slots);
    const places = Math.min(this.placesFor(group), MAX_READY_PER_CLAIM);
    const limit = slots + places;
    group.reserved += places;
    group.claiming = true;
    group.again = false;
    const { items, more, nextDueInMs } = await this.claim(group.name, limit);
    group.claiming = false;
    group.reserved -= places;
    this.shares.giveBack(group, Math.max(0, slots - items.length));
    group.more = more;
    if (group.owner === null) this.shares.describe(group, { owner: this.ownerOf(group.name) });
    for (const job of items.slice(0, slots)) this.begin(group, job);
    for (const job of items.slice(slots)) this.letWait(group, job);
    if (group.again || items.length === limit) this.waiting.add(group);
    if (nextDueInMs !== null && !this.isStopping) this.scheduler.schedule(group.name, nextDueInMs);
    this.forgetIfIdle(group);
    this.claimNext();
  }

  private hasRoomToClaim(mode: Mode): boolean {
    const { live, sandbox } = this.claimsUnderWay;
    return live + sandbox < this.maxClaims && (mode === 'live' || sandbox < this.maxClaims * SANDBOX_PART);
  }

  /** Never rejects. */
  private async claim(group: string, limit: number): Promise<Claim<Job>> {
    const underWay = this.claimsUnderWay;
    let mode = this.ownerOf(group)?.mode ?? 'live';
    underWay[mode]++;
    try {
      if (!this.ownerOf(group)) {
        await this.owners.add(group);
        underWay[mode]--;
        mode = this.ownerOf(group)?.mode ?? mode;
        underWay[mode]++;
      }
      return await this.claims[mode].add({ group, limit });
    } catch (error) {
      this.options.logger.warn(
        { event: 'jobs.claim_failed', jobs: this.options.name, group, err: error },
        'claim failed; the sweep will retry',
      );
      return { items: [], nextDueInMs: null, more: true };
    } finally {
      underWay[mode]--;
    }
  }

  private begin(group: Group<Job>, job: Job): void {
    const control = new AbortController();
    this.held.set(job, control);
    group.running++;
    const isOverdue = this.watchTime(group);
    this.track(
      this.runToEnd(group.name, job, control).then(({ refetch, wasTimed }) => {
        this.held.delete(job);
        group.running--;
        if (isOverdue()) group.overdue--;
        else if (wasTimed && group.overdue === 0) this.setPace(group, 'fast');
        this.shares.giveBack(group, 1);
        // A running claim may have read the table before this job ended.
        if (group.claiming) group.again = true;
        else if (refetch || group.more) this.waiting.add(group);
        else this.forgetIfIdle(group);
        this.claimThisTurn();
      }),
    );
  }

  /**
   * Marks the group as slow if the job that begins now takes too long. Call the result when the job ends: it returns
   * whether the job took too long.
   */
  private watchTime(group: Group<Job>): () => boolean {
    if (this.options.slowAfterMs === undefined) return () => false;
    let isOverdue = false;
    const timer = setTimeout(() => {
      isOverdue = true;
      group.overdue++;
      this.setPace(group, 'slow');
      // The group's slots in the fast part have become free.
      this.claimNext();
    }, this.options.slowAfterMs);
    return () => {
      clearTimeout(timer);
      return isOverdue;
    };
  }

  private setPace(group: Group<Job>, pace: Pace): void {
    if (group.pace === pace) return;
    this.shares.describe(group, { pace });
    this.waiting.reorder(group);
    this.paces.set(group.name, pace);
  }

  /** Never rejects. */
  private async runToEnd(name: string, job: Job, control: AbortController): Promise<JobEnd> {
    try {
      return await this.run(job, control);
    } catch (error) {
      this.options.logger.error(
        {
          event: 'jobs.run_failed',
          jobs: this.options.name,
          group: name,
          ...this.options.concernsOf?.(job),
          err: error,
        },
        'job failed; its lease will lapse',
      );
      return { refetch: true };
    }
  }

  private forgetIfIdle(group: Group<Job>): void {
    const isIdle = group.running === 0 && group.reserved === 0 && group.ready.length === 0 && !group.claiming;
    if (isIdle && !this.waiting.has(group)) this.groups.delete(group.name);
  }

  private track(task: Promise<void>): void {
    this.tasks.add(task);
    void task.finally(() => this.tasks.delete(task));
  }
}

/** Combines the claims of a mode if the source claims for many groups in one statement (D51). */
function newClaims<Job>(source: JobSource<Job>): Batcher<ClaimRequest, Claim<Job>> {
  const gather = 'microtask';
  if (!source.claimMany)
    return new Batcher({
      maxItems: 1,
      concurrency: SINGLE_CLAIMS,
      gather,
      handle: async ([one]) => [await source.claim(one!.group, one!.limit)],
    });
  return new Batcher({
    maxItems: GROUPS_PER_CLAIM,
    concurrency: CLAIM_STATEMENTS,
    gather,
    handle: (requests) => source.claimMany!(requests),
  });
}
