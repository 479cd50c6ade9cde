import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { LoadedPeer } from './signals/signal-peers.js';
import type { GroupWorker, WorkSignals } from './signals/work-signals.js';

const REMOVE_AT_END = { removeOnComplete: true, removeOnFail: true } as const;

/** A delayed notification's data: the groups to claim from. Ids only, never rows (B3). */
export interface NotifyJob {
  readonly groups: readonly string[];
}

/**
 * Tells the workers that a group (an endpoint, a partner's orders) has something due: now by a signal, at a later time
 * by a delayed job of the queue (D51). Best effort by design: a lost notification delays work until the next sweep and
 * loses nothing (D1), so callers do not wait.
 */
export class WorkerNotifier {
  constructor(
    private readonly queue: Queue<NotifyJob>,
    private readonly signals: WorkSignals,
    private readonly logger: Logger,
  ) {}

  /**
   * Notifies now: the worker of this process directly, others by a signal.
   * @param owner the process that has the group, where one is known: it alone is woken
   */
  notify(group: string, owner?: string): void {
    this.signals.tell(this.queue.name, group, owner);
  }

  /** The other processes that work on the queue. */
  peers(): readonly LoadedPeer[] {
    return this.signals.peersOf(this.queue.name);
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

  /** The worker of this process for the queue; it is told directly, until the answer is called. */
  attach(worker: GroupWorker): () => void {
    return this.signals.attach(this.queue.name, worker);
  }

  /** Waits until all signals have left, or a second has passed; called by a graceful stop. */
  settle(): Promise<void> {
    return this.signals.settle();
  }

  private report(error: unknown): void {
    this.logger.warn(
      { event: 'queue.notification_lost', queue: this.queue.name, err: error },
      'notification lost; the sweep will find the work',
    );
  }
}
