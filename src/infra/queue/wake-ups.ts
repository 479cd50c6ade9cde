import type { Queue } from 'bullmq';
import type { Logger } from 'pino';

const SETTLE_LIMIT_MS = 1_000;
const GATHER_MS = 20;

/** A wake-up's data: which lanes to look at. Ids only, never rows (B3). */
export interface WakeUpJob {
  readonly lanes: readonly string[];
}

/**
 * Asks a worker to look at a lane (an endpoint, a partner's orders). Best effort by design: a wake-up that is lost
 * delays work until the next sweep and loses nothing (D1), so callers do not wait for the queue.
 */
export class WakeUps {
  private readonly pending = new Set<string>();
  private armed = false;
  private lastLeftAt = -Infinity;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly queue: Queue<WakeUpJob>,
    private readonly logger: Logger,
  ) {}

  /**
   * Wakes the lane now. The first request leaves at once, those of the next few milliseconds as one job: adding and
   * ending jobs is what wake-ups cost PostgreSQL.
   */
  request(lane: string): void {
    this.pending.add(lane);
    if (this.armed) return;
    this.armed = true;
    const waitMs = Math.max(0, this.lastLeftAt + GATHER_MS - performance.now());
    setTimeout(() => {
      this.lastLeftAt = performance.now();
      this.flushing = this.flushing.then(() => this.flush());
    }, waitMs);
  }

  /** Wakes the lane at `dueAt`. Repeating the same request makes no second job. */
  requestAt(lane: string, dueAt: Date): void {
    const delay = Math.max(0, dueAt.getTime() - Date.now());
    if (delay === 0) return this.request(lane);
    // Job ids take no colon, and `add` with an id that still exists is ignored in silence: wanted here.
    const jobId = `${lane.replaceAll(':', '-')}_${dueAt.getTime()}`;
    this.queue
      .add('wake', { lanes: [lane] }, { delay, jobId, ...FORGET })
      .catch((error: unknown) => this.report(error));
  }

  /** Waits until what was requested has left, or a second has passed; called by a graceful stop. */
  async settle(): Promise<void> {
    if (this.armed) await new Promise((resolve) => setTimeout(resolve, GATHER_MS * 2));
    let timer: NodeJS.Timeout | undefined;
    // A queue that is away would hold the stop for ever; the sweep finds what did not leave.
    const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, SETTLE_LIMIT_MS)));
    await Promise.race([this.flushing, limit]);
    clearTimeout(timer);
  }

  private async flush(): Promise<void> {
    this.armed = false;
    const lanes = [...this.pending];
    this.pending.clear();
    try {
      await this.queue.add('wake', { lanes }, FORGET);
    } catch (error) {
      this.report(error);
    }
  }

  private report(error: unknown): void {
    this.logger.warn(
      { event: 'queue.wake_up_lost', queue: this.queue.name, err: error },
      'wake-up lost; the sweep will find the work',
    );
  }
}

const FORGET = { removeOnComplete: true, removeOnFail: true } as const;
