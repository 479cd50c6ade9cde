import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Reservation } from './job-runner.js';
import type { LoadedPeer } from './signals/signal-peers.js';
import type { GroupWorker, WorkSignals } from './signals/work-signals.js';

const REMOVE_AT_END = { removeOnComplete: true, removeOnFail: true } as const;

/** Data of a delayed notification: the groups to claim from. Ids only, never rows (B3). */
export interface NotifyJob {
  readonly groups: readonly string[];
}

/**
 * Notifies the workers that a group (an endpoint, a partner's orders) has due work: now by a signal, later by a delayed
 * job of the queue (D51). Best effort by design: a lost notification delays work until the next sweep and loses nothing
 * (D1), so callers do not wait.
 */
export class WorkerNotifier {
  constructor(
    private readonly queue: Queue<NotifyJob>,
    private readonly signals: WorkSignals,
    private readonly logger: Logger,
  ) {}

  /**
   * Notifies now: this process's worker directly, others by a signal.
   * @param owner the process that has the group, if known: only this one is notified
   */
  notify(group: string, owner?: string): void {
    this.signals.tell(this.queue.name, group, owner);
  }

  /**
   * Reserves a slot of this process's worker for a job that is being created, so that nobody has to claim it. Null if
   * the process has no worker, or the worker has no slot for the group.
   */
  reserve<Job>(group: string): Reservation<Job> | null {
    return this.signals.reserve(this.queue.name, group);
  }

  /** The other processes that work on the queue. */
  peers(): readonly LoadedPeer[] {
    return this.signals.peersOf(this.queue.name);
  }

  /** Notifies at `dueAt`. A repeated call creates no second job. */
  notifyAt(group: string, dueAt: Date): void {
    const delay = Math.max(0, dueAt.getTime() - Date.now());
    if (delay === 0) return this.notify(group);
    // Job ids must not contain colons. `add` silently ignores an existing id, which is intended here.
    const jobId = `${group.replaceAll(':', '-')}_${dueAt.getTime()}`;
    this.queue
      .add('notify', { groups: [group] }, { delay, jobId, ...REMOVE_AT_END })
      .catch((error: unknown) => this.report(error));
  }

  /** Registers this process's worker of the queue for direct notifications. Returns the function that removes it. */
  attach(worker: GroupWorker): () => void {
    return this.signals.attach(this.queue.name, worker);
  }

  /** Waits until all signals are sent, at most one second. Called during a graceful shutdown. */
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
