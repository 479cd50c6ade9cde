/** Shorter waits use a timer of this process; longer ones use the queue, which survives the process (D1, D51). */
const NEAR_MS = 1_000;
/** Tolerance for the due time of one job, which is converted from the database's clock and therefore jitters. */
const SAME_MS = 100;
/** Minimum wait: a due but unclaimed job is locked by another transaction, and polling it must not be a hot loop. */
const MIN_MS = 25;
/** From this many groups on, past entries are removed before a new one is added. */
const MANY = 1_000;

export interface ClaimSchedulerOptions {
  /** Claims from the group now. */
  claim(group: string): void;
  /** Schedules a notification of the group in the queue; it survives this process. */
  notifyAt(group: string, at: Date): void;
}

/** Schedules a group's next claim once: a near one with a timer, a later one with a delayed job of the queue. */
export class ClaimScheduler {
  private readonly timers = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>();
  private readonly askedFor = new Map<string, number>();

  constructor(private readonly options: ClaimSchedulerOptions) {}

  /** @param waitMs milliseconds from now; 0 or less means now */
  schedule(group: string, waitMs: number): void {
    const dueMs = Date.now() + Math.max(waitMs, MIN_MS);
    if (waitMs < NEAR_MS) this.setTimer(group, dueMs);
    else this.askQueue(group, dueMs);
  }

  /** Drops the timers. Jobs in the queue remain. */
  stop(): void {
    for (const { timer } of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private setTimer(group: string, dueMs: number): void {
    const current = this.timers.get(group);
    if (current && current.at <= dueMs) return;
    clearTimeout(current?.timer);
    const timer = setTimeout(() => {
      this.timers.delete(group);
      this.options.claim(group);
    }, dueMs - Date.now());
    this.timers.set(group, { at: dueMs, timer });
  }

  private askQueue(group: string, dueMs: number): void {
    const asked = this.askedFor.get(group);
    if (asked !== undefined && Math.abs(asked - dueMs) < SAME_MS) return;
    this.forgetPast();
    this.askedFor.set(group, dueMs);
    this.options.notifyAt(group, new Date(dueMs));
  }

  private forgetPast(): void {
    if (this.askedFor.size < MANY) return;
    const now = Date.now();
    for (const [group, at] of this.askedFor) if (at < now) this.askedFor.delete(group);
  }
}
