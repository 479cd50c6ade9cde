import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { AuditLog } from '../../audit/index.js';
import { APP_CONFIG, type AppConfig } from '../../config/index.js';
import { Allowances } from '../../infra/allowances.js';
import { databaseNow, Transactions, type Tx } from '../../infra/database/index.js';
import { InjectNotifier, partnerGroup, WorkerNotifier } from '../../infra/jobs/index.js';
import { LOGGER } from '../../infra/logging.js';
import { runEach } from '../../infra/run-each.js';
import { NOTHING_DUE, Sweeps } from '../../infra/sweeps.js';
import type { BacklogJobEntity } from '../backlog-job.entity.js';
import { BacklogJobs } from '../backlog-jobs.js';
import { BacklogJobsRepository } from '../backlog-jobs.repository.js';
import { DELIVERY_JOBS } from '../delivery-fan-out.js';

const TICK_MS = 500;
/** Jobs are rare: while there are none, the first one may wait this long. */
const IDLE_TICK_MS = 1_000;
const JOBS_PER_TICK = 100;
/** A large job takes turns with the others. */
const STEPS_PER_TURN = 10;
/** A replay that fell behind makes up for at most this much time. */
const MAX_PAUSE_MS = 1_000;

/**
 * Advances backlog jobs, one small transaction at a time (D32, D33). Replays create a limited number of deliveries per
 * second, and never have more than one second's worth pending, so that new events do not queue behind repeated ones
 * (D34).
 */
@Injectable()
export class BacklogRunner {
  private readonly perSecond: number;
  /** All replays of a partner and mode share one rate in this process. */
  private readonly ofOwner: Allowances;

  constructor(
    private readonly jobs: BacklogJobsRepository,
    private readonly backlog: BacklogJobs,
    private readonly audit: AuditLog,
    private readonly transactions: Transactions,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
    @Inject(APP_CONFIG) config: AppConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    sweeps: Sweeps,
  ) {
    this.perSecond = config.webhooks.replayPerSecond;
    this.ofOwner = new Allowances({ burst: this.perSecond, perSecond: this.perSecond });
    sweeps.register({
      name: 'webhooks.backlogs',
      intervalMs: TICK_MS,
      idleIntervalMs: IDLE_TICK_MS,
      run: (stopping) => this.advanceAll(stopping),
    });
  }

  /** @throws AggregateError after every job's turn, when some failed */
  private async advanceAll(stopping: AbortSignal): Promise<unknown> {
    const ids = await this.jobs.listRunnable(JOBS_PER_TICK);
    if (ids.length === 0) return NOTHING_DUE;
    await runEach(ids, (id) => this.takeTurn(id, stopping), {
      stopping,
      failed: (jobId, error) =>
        this.logger.warn({ event: 'webhook.backlog_failed', jobId, err: error }, 'retrying'),
    });
    return undefined;
  }

  private async takeTurn(id: string, stopping: AbortSignal): Promise<void> {
    let goesOn = await this.jobs.takeTurn(id);
    for (let step = 0; goesOn && !stopping.aborted && step < STEPS_PER_TURN; step++)
      goesOn = await this.transactions.run((tx) => this.advance(tx, id));
  }

  /** Runs one step. Returns whether the next one can follow at once. */
  private async advance(tx: Tx, id: string): Promise<boolean> {
    const job = await this.jobs.lockRunnable(tx, id);
    if (!job) return false;
    if (job.endpointDeleted) {
      await this.jobs.save(tx, { ...job, status: 'canceled' });
      return false;
    }
    const { step, created } = job;
    const pace = step === 'repeat' ? await this.paceOf(tx, job) : null;
    const most = pace?.most ?? Infinity;
    if (most <= 0) return false;
    await this.backlog.takeStep(tx, job, most);
    if (job.step === 'await' && step === 'await' && job.status === 'running') return false;
    const made = job.created - created;
    if (pace !== null && made > 0) {
      this.ofOwner.spend(partnerGroup(job), made);
      job.pacedTo = new Date(pace.fromMs + Math.ceil((made * 1_000) / this.perSecond));
    }
    await this.jobs.save(tx, job);
    if (made > 0 || step === 'release') tx.afterCommit(() => this.notifier.notify(job.endpointId));
    if (step === 'repeat' && job.step === 'await') tx.afterCommit(() => this.warnOfGone(job));
    if (job.status === 'completed') await this.recordSettled(tx, job);
    return job.status === 'running' && step !== 'await' && made < most;
  }

  private async paceOf(
    tx: Tx,
    job: BacklogJobEntity,
  ): Promise<{ readonly fromMs: number; readonly most: number }> {
    const now = (await databaseNow(tx)).getTime();
    const fromMs = Math.max(job.pacedTo?.getTime() ?? 0, now - MAX_PAUSE_MS);
    const allowed = Math.floor((this.perSecond * (now - fromMs)) / 1_000);
    const waiting = await this.jobs.countPending(tx, job.id);
    const left = Math.floor(this.ofOwner.left(partnerGroup(job)));
    return { fromMs, most: Math.min(allowed, this.perSecond - waiting, left) };
  }

  private warnOfGone({ id: jobId, endpointId, total, created }: BacklogJobEntity): void {
    if (created === total) return;
    const line = { event: 'webhook.replay_events_gone', jobId, endpointId, count: total - created };
    this.logger.warn(line, 'not replayed: past retention');
  }

  /**
   * Records, once per enabling of the endpoint, that its backlog is settled. A release does not count while a resend is
   * still running.
   */
  private async recordSettled(tx: Tx, job: BacklogJobEntity): Promise<void> {
    const { kind, partnerId, endpointId, created: resent } = job;
    if (kind === 'replay' || (kind === 'release' && (await this.jobs.isResending(tx, endpointId)))) return;
    const action = 'webhook_endpoint.backlog_settled';
    const details = { resent };
    await this.audit.record(tx, { actor: 'system', action, partnerId, subjectId: endpointId, details });
  }
}
