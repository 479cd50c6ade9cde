import { Injectable } from '@nestjs/common';
import { AuditLog, type ChangeAuthor } from '../audit/index.js';
import { AppError, NotFound, ValidationFailed } from '../common/errors/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import type { BacklogJobEntity } from './backlog-job.entity.js';
import { BacklogJobs } from './backlog-jobs.js';
import { BacklogJobsRepository, type ReplayProgress } from './backlog-jobs.repository.js';
import type { ReplaySelection } from './backlog-steps.repository.js';
import type { EndpointKey } from './webhook-endpoints.repository.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';

/** Maximum count of a dry run; a total of this value means "at least". */
export const MAX_COUNTED = 10_000;

export interface ReplayCommand {
  readonly since: Date;
  /** Null means now. */
  readonly until: Date | null;
  readonly eventTypes: ReplaySelection['eventTypes'];
  readonly statuses: ReplaySelection['statuses'];
}

/** A replay and the state of its deliveries so far. */
export interface TrackedReplay {
  readonly replay: BacklogJobEntity;
  readonly progress: ReplayProgress;
}

/** Result of a dry run: nothing is sent and nothing is stored. */
export interface ReplayPreview extends ReplaySelection {
  /** 10,000 means "at least". */
  readonly total: number;
}

/** Starts, shows and cancels replays (D33). The worker creates their deliveries at its own rate. */
@Injectable()
export class ReplayEvents {
  constructor(
    private readonly endpoints: WebhookEndpointsService,
    private readonly backlog: BacklogJobs,
    private readonly jobs: BacklogJobsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** @throws NotFound; ValidationFailed when `since` is not in the past */
  async preview(tx: Tx, key: EndpointKey, command: ReplayCommand): Promise<ReplayPreview> {
    const { mode } = await this.endpoints.getById(key, tx);
    const selection = await this.select(tx, key.id, command);
    return { ...selection, total: await this.jobs.count(tx, selection, mode, MAX_COUNTED) };
  }

  /**
   * Whether this replay and the partner's replays of the last hour together repeat more than `most` deliveries; true
   * while one of them is still counting. Concurrent calls for the partner wait until the end of `tx`, so that many
   * small replays cannot add up to a large one (D50).
   * @throws NotFound; ValidationFailed when `since` is not in the past
   */
  async isLargerThan(tx: Tx, most: number, key: EndpointKey, command: ReplayCommand): Promise<boolean> {
    const { mode } = await this.endpoints.getById(key, tx);
    const lately = await this.jobs.startedLately(tx, key.partnerId);
    if (lately === null || lately > most) return true;
    const selection = await this.select(tx, key.id, command);
    const left = most - lately;
    return (await this.jobs.count(tx, selection, mode, left + 1)) > left;
  }

  /** @throws NotFound; ValidationFailed when `since` is not in the past */
  async start(tx: Tx, by: ChangeAuthor, key: EndpointKey, command: ReplayCommand): Promise<TrackedReplay> {
    await this.endpoints.getById(key, tx);
    const { partnerId } = key;
    const id = await this.backlog.replay(tx, key, await this.select(tx, key.id, command));
    const started = await this.get(id, tx);
    const { total, step } = started.replay;
    const details = { endpoint_id: key.id, ...(step === 'count' ? {} : { total }) };
    const action = 'webhook_replay.started';
    await this.audit.record(tx, { ...by, action, partnerId, subjectId: id, details });
    return started;
  }

  /** @throws NotFound */
  async get(id: string, tx?: Tx): Promise<TrackedReplay> {
    const replay = await this.jobs.findReplay(id, tx);
    if (!replay) throw new NotFound();
    return { replay, progress: await this.jobs.progressOf(replay, tx) };
  }

  /**
   * Stops creating deliveries and discards unsent ones. Canceling twice has no further effect.
   * @throws NotFound; AppError `conflict` when the replay is completed
   */
  async cancel(tx: Tx, by: ChangeAuthor, id: string): Promise<TrackedReplay> {
    const replay = await this.jobs.findReplayForChange(tx, id);
    if (!replay) throw new NotFound();
    if (replay.status === 'completed')
      throw new AppError('conflict', {
        detail:
          'The replay is already completed and cannot be canceled. GET /internal/v1/replays/{id} shows the result.',
      });
    if (replay.status === 'running') {
      await this.jobs.save(tx, { ...replay, status: 'canceled' });
      await this.jobs.discardPending(tx, id);
      const { partnerId } = replay;
      await this.audit.record(tx, { ...by, action: 'webhook_replay.canceled', partnerId, subjectId: id });
    }
    return this.get(id, tx);
  }

  private async select(tx: Tx, endpointId: string, command: ReplayCommand): Promise<ReplaySelection> {
    const now = await databaseNow(tx);
    const { since, eventTypes, statuses } = command;
    if (since >= now)
      throw new ValidationFailed([
        { pointer: '/since', code: 'out_of_range', message: 'must be in the past' },
      ]);
    // A replay never covers the future.
    const until = command.until !== null && command.until < now ? command.until : now;
    return { endpointId, since, until, eventTypes, statuses };
  }
}
