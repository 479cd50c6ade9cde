import { AppError } from '../../common/errors/index.js';

export interface CallerSlotSettings {
  /** The limited resource as named to partners, e.g. `lists`. */
  readonly what: string;
  /** Maximum concurrency per caller. */
  readonly perCaller: number;
  /** Maximum concurrency for all callers together. */
  readonly most: number;
  /** Maximum wait of a call for its turn. */
  readonly waitMs: number;
  /** Whether all work is stalled: then no caller is to blame for its wait. */
  readonly standsStill?: () => boolean;
}

interface Waiting {
  readonly begin: () => void;
  readonly timer: NodeJS.Timeout;
}

interface Caller {
  running: number;
  readonly waiting: Waiting[];
}

/** More than a key's burst of waiting calls means that the caller does not intend to read the responses. */
const MAX_WAITING = 256;

/**
 * Limits one kind of work in a process, per caller and in total, so that capacity remains for other callers and other
 * work (D43). Waiting callers take turns; each caller's calls run in order of arrival.
 */
export class CallerSlots {
  /** Callers with running or waiting work; the most recently served is last. */
  private readonly callers = new Map<string, Caller>();
  private running = 0;

  constructor(private readonly settings: CallerSlotSettings) {}

  /**
   * Waits for a slot and returns the function that releases it, to be called once.
   * @throws AppError `rate_limited` when the caller's own calls use up its limit during the whole wait;
   * `service_unavailable` when other callers do, or all work is stalled
   */
  async take(name: string): Promise<() => void> {
    const caller = this.callers.get(name) ?? { running: 0, waiting: [] };
    this.callers.set(name, caller);
    if (this.isFree(caller) && caller.waiting.length === 0) this.start(name, caller);
    else await this.waitFor(name, caller);
    return () => this.end(name, caller);
  }

  /** Number of callers with running or waiting work. */
  get size(): number {
    return this.callers.size;
  }

  /** Runs `work` with a slot of this caller. @throws as `take` */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const release = await this.take(name);
    try {
      return await work();
    } finally {
      release();
    }
  }

  private isFree(caller: Caller): boolean {
    return this.running < this.settings.most && caller.running < this.settings.perCaller;
  }

  private start(name: string, caller: Caller): void {
    this.running++;
    caller.running++;
    this.callers.delete(name);
    this.callers.set(name, caller);
  }

  private waitFor(name: string, caller: Caller): Promise<void> {
    if (caller.waiting.length >= MAX_WAITING) return Promise.reject(this.refusal(caller));
    // Checked now, because the work may have resumed by the end of the wait; the caller is still not to blame.
    const stoodStill = this.settings.standsStill?.();
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        caller.waiting.splice(caller.waiting.indexOf(entry), 1);
        this.forgetIfIdle(name, caller);
        reject(this.refusal(caller, stoodStill));
      }, this.settings.waitMs);
      const entry: Waiting = { begin: resolve, timer };
      caller.waiting.push(entry);
    });
  }

  private end(name: string, caller: Caller): void {
    this.running--;
    caller.running--;
    for (const [each, { waiting }] of [...this.callers]) {
      if (this.running >= this.settings.most) break;
      const candidate = this.callers.get(each)!;
      const next = this.isFree(candidate) ? waiting.shift() : undefined;
      if (!next) continue;
      clearTimeout(next.timer);
      this.start(each, candidate);
      next.begin();
    }
    this.forgetIfIdle(name, caller);
  }

  private forgetIfIdle(name: string, { running, waiting }: Caller): void {
    if (running === 0 && waiting.length === 0) this.callers.delete(name);
  }

  private refusal({ running }: Caller, stoodStill = false): AppError {
    const headers = { 'retry-after': '1' };
    if (running < this.settings.perCaller || stoodStill || this.settings.standsStill?.())
      return new AppError('service_unavailable', { headers });
    const { perCaller, what } = this.settings;
    const detail = `Too many requests at once: a partner can run at most ${perCaller} ${what} at a time. Retry when one has finished.`;
    return new AppError('rate_limited', { detail, headers });
  }
}
