import { AppError } from '../../common/errors/index.js';

export interface CallerSlotSettings {
  /** What is bounded, as a partner is told of it, e.g. `lists`. */
  readonly what: string;
  /** Of one caller under way. */
  readonly perCaller: number;
  /** Of all callers together. */
  readonly most: number;
  /** How long a call waits for its turn. */
  readonly waitMs: number;
  /** Whether everybody's work stands still: then no caller is to blame for what it takes. */
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

/** More than a key's burst wait only for somebody who does not mean to read what comes. */
const MOST_WAITING = 256;

/**
 * Bounds how much of one kind of work a process does at a time, for each caller and for all together, so that something
 * is always left for the others and for other work (D43). Callers that wait take turns, each first come, first served.
 */
export class CallerSlots {
  /** Callers with work under way or waiting; whose turn was last stands last. */
  private readonly callers = new Map<string, Caller>();
  private running = 0;

  constructor(private readonly settings: CallerSlotSettings) {}

  /**
   * Waits for a slot and answers what gives it back, to be called once.
   * @throws AppError `rate_limited` when the caller's own calls take all that it may have for the whole wait, and
   * `service_unavailable` when those of others do, or everybody's work stands still
   */
  async take(name: string): Promise<() => void> {
    const caller = this.callers.get(name) ?? { running: 0, waiting: [] };
    this.callers.set(name, caller);
    if (this.isFree(caller) && caller.waiting.length === 0) this.start(name, caller);
    else await this.waitFor(name, caller);
    return () => this.end(name, caller);
  }

  /** Callers with work under way or waiting. */
  get size(): number {
    return this.callers.size;
  }

  /** Does `work` with a slot of this caller. @throws as `take` */
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
    if (caller.waiting.length >= MOST_WAITING) return Promise.reject(this.refusal(caller));
    // By the end of the wait the work may go on again, and the caller is as little to blame.
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
    const detail = `A partner may have at most ${perCaller} ${what} under way at a time. Wait for one of them to end, then retry.`;
    return new AppError('rate_limited', { detail, headers });
  }
}
