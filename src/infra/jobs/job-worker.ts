import { OnWorkerEvent, WorkerHost } from '@nestjs/bullmq';
import type { BeforeApplicationShutdown, OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import type { Job as QueueJob } from 'bullmq';
import { JobRunner, type Reservation } from './job-runner.js';
import type { JobRunnerOptions } from './job-runner-options.js';
import type { JobEnd, JobSource } from './job-source.js';
import type { NotifyJob, WorkerNotifier } from './worker-notifier.js';

export interface JobWorkerOptions<Job> extends Omit<JobRunnerOptions<Job>, 'notifyAt'> {
  readonly notifier: WorkerNotifier;
}

/**
 * One kind of job in one worker process: receives signals and delayed notifications of its queue, and runs due work. A
 * subclass names the queue with `@Processor` and runs one job in `run`. The queue's own job ends at once, because it
 * only names groups.
 */
export abstract class JobWorker<Job>
  extends WorkerHost
  implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown
{
  protected readonly runner: JobRunner<Job>;
  private detach = (): void => undefined;

  protected constructor(
    source: JobSource<Job>,
    private readonly options: JobWorkerOptions<Job>,
  ) {
    super();
    this.runner = new JobRunner(source, (job, control) => this.run(job, control), {
      ...options,
      notifyAt: (group, at) => options.notifier.notifyAt(group, at),
    });
  }

  /** Whether only this process may claim from the group, now or once it has a slot. */
  protected has(_group: string): boolean {
    return false;
  }

  /** Reserves a slot for a job that is being created; null where jobs only begin by a claim. */
  protected reserveFor(_group: string): Reservation<Job> | null {
    return null;
  }

  /** Number of groups of this process, reported to the other processes. */
  protected load(): number {
    return 0;
  }

  /** Runs one job and records its outcome, see `RunJob`. */
  protected abstract run(job: Job, control: AbortController): Promise<JobEnd>;

  override process({ data }: QueueJob<NotifyJob>): Promise<void> {
    for (const group of data.groups) this.runner.notify(group);
    return Promise.resolve();
  }

  onApplicationBootstrap(): void {
    this.runner.start();
    this.detach = this.options.notifier.attach({
      claimNow: (group) => this.runner.notify(group) || this.has(group),
      claimWithin: (group, ms) => this.runner.notifyWithin(group, ms),
      reserve: (group) => this.reserveFor(group),
      load: () => this.load(),
    });
  }

  /**
   * Draining begins here, because Nest awaits hooks one by one and every drain should have the whole time. A BullMQ
   * worker that is not closing when its connection ends retries without a pause, and the process never ends.
   */
  onModuleDestroy(): void {
    this.detach();
    void this.runner.stop();
    this.closeWorker().catch(() => undefined);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.closeWorker(), this.runner.stop()]);
  }

  private async closeWorker(): Promise<void> {
    await this.worker.close();
  }

  @OnWorkerEvent('error')
  onQueueError(error: Error): void {
    const { name, logger } = this.options;
    logger.warn({ event: 'queue.worker_error', jobs: name, err: error }, 'queue worker error');
  }
}
