import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import { handleApart } from '../batcher.js';
import { mayBeOfOneRow } from '../database/index.js';

const SETTLE_LIMIT_MS = 1_000;
const GATHER_MS = 20;
const REMOVE_AT_END = { removeOnComplete: true, removeOnFail: true } as const;

/** A notification's data: the groups to claim from. Ids only, never rows (B3). */
export interface NotifyJob {
  readonly groups: readonly string[];
}

/**
 * Tells the workers that a group (an endpoint, a partner's orders) has something due, now or at a later time. Best
 * effort by design: a lost notification delays work until the next sweep and loses nothing (D1), so callers do not
 * wait for the queue.
 */
export class WorkerNotifier {
  private readonly pending = new Set<string>();
  private armed = false;
  private lastLeftAt = -Infinity;
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly queue: Queue<NotifyJob>,
    private readonly logger: Logger,
  ) {}

  /**
   * Notifies now. The first notification leaves at once, those of the next few milliseconds as one job: adding and
   * ending jobs is what notifications cost PostgreSQL.
   */
  notify(group: string): void {
    this.pending.add(group);
    if (this.armed) return;
    this.armed = true;
    const waitMs = Math.max(0, this.lastLeftAt + GATHER_MS - performance.now());
    setTimeout(() => {
      this.lastLeftAt = performance.now();
      this.flushing = this.flushing.then(() => this.flush());
    }, waitMs);
  }

  /** Notifies at `dueAt`. Repeating the same call makes no second job. */
  notifyAt(group: string, dueAt: Date): void {
    const delay = Math.max(0, dueAt.getTime() - Date.now());
    if (delay === 0) return this.notify(group);
    // Job ids take no colon, and `add` with an id that still exists is ignored in silence: wanted here.
    const jobId = `${group.replaceAll(':', '-')}_${dueAt.getTime()}`;
    this.queue
      .add('notify', { groups: [group] }, { delay, jobId, ...REMOVE_AT_END })
      .catch((error: unknown) => this.report(error));
  }

  /** Waits until all notifications have left, or a second has passed; called by a graceful stop. */
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
    const groups = [...this.pending];
    this.pending.clear();
    await handleApart(groups, {
      handle: async (part) => void (await this.queue.add('notify', { groups: part }, REMOVE_AT_END)),
      isItemFault: mayBeOfOneGroup,
      failed: (_group, error) => this.report(error),
      whole: (_groups, error) => this.report(error),
    });
  }

  private report(error: unknown): void {
    this.logger.warn(
      { event: 'queue.notification_lost', queue: this.queue.name, err: error },
      'notification lost; the sweep will find the work',
    );
  }
}

/** Whether the queue may have refused the job for one of its groups: an error of a statement, or of a Redis script. */
function mayBeOfOneGroup(error: unknown): boolean {
  return mayBeOfOneRow(error) || (error instanceof Error && error.name === 'ReplyError');
}
