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

/** Maximum that a dry run counts; a total of this says "at least". */
export const MOST_COUNTED = 10_000;

export interface ReplayCommand {
  readonly since: Date;
  /** Null: until now. */
  readonly until: Date | null;
  readonly eventTypes: ReplaySelection['eventTypes'];
  readonly statuses: ReplaySelection['statuses'];
}

/** A replay and what became of its deliveries so far. */
export interface TrackedReplay {
  readonly replay: BacklogJobEntity;
  readonly progress: ReplayProgress;
}

/** What a dry run finds: nothing is sent and nothing is stored. */
export interface ReplayPreview extends ReplaySelection {
  /** 10,000 says "at least". */
  readonly total: number;
}

/** Starts, shows and cancels replays (D33). The worker makes their deliveries, at its pace. */
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
    return { ...selection, total: await this.jobs.count(tx, selection, mode, MOST_COUNTED) };
  }

  /**
   * Whether this replay repeats more than `most` deliveries, together with those that the partner has started within the
   * last hour; true while one of them is still counting. Holds back whoever else asks for the partner until the end of
   * `tx`, so that many small ones at once are no large one (D50).
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
   * Makes no further deliveries and gives up those that are not sent; canceling twice is the same as once.
   * @throws NotFound; AppError `conflict` when the replay is completed
   */
  async cancel(tx: Tx, by: ChangeAuthor, id: string): Promise<TrackedReplay> {
    const replay = await this.jobs.findReplayForChange(tx, id);
    if (!replay) throw new NotFound();
    if (replay.status === 'completed')
      throw new AppError('conflict', {
        detail:
          'The replay is completed and cannot be canceled. GET /internal/v1/replays/{id} shows what it sent.',
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
    // What has not happened yet is not repeated.
    const until = command.until !== null && command.until < now ? command.until : now;
    return { endpointId, since, until, eventTypes, statuses };
  }
}
