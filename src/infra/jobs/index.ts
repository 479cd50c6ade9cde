/**
 * Background work on table rows, done by workers. A table (`JobSource`) knows the due rows and their leases; a
 * `JobRunner` claims from it, group by group. Immediate notifications go to this process's worker or, as signals
 * (`WorkSignals`), to others; later ones are delayed jobs of the queue (BullMQ).
 * Callers: a feature's use cases notify (`WorkerNotifier`) after their commit; its worker extends `JobWorker`.
 * Flow: notify -> signal, or queue -> JobWorker -> JobRunner.notify -> JobSource.claim -> JobWorker.run.
 */
export { ClaimScheduler } from './claim-scheduler.js';
export { JobInterrupted, JobRunner, type Reservation } from './job-runner.js';
export type { JobRunnerOptions } from './job-runner-options.js';
export type { Claim, ClaimRequest, JobEnd, JobSource, RunJob } from './job-source.js';
export { JobWorker } from './job-worker.js';
export { LOCKING_BATCHES, lockWaitMs } from './locking-batches.js';
export { InjectNotifier, JobsModule, notifierModule } from './jobs.module.js';
export type { GroupOwner } from './slot-shares.js';
export { partnerGroup, scopeOfGroup } from './partner-group.js';
export { openQueueConnection, QUEUE_SCHEMA, type QueueConnection } from './queue-connection.js';
export { type GroupWorker, WorkSignals } from './signals/work-signals.js';
export type { SignalChannel } from './signals/signal-channel.js';
export { type NotifyJob, WorkerNotifier } from './worker-notifier.js';
