import { Injectable } from '@nestjs/common';
import { newId } from '../common/ids.js';
import { databaseNow, type DayStep, type Tx } from '../infra/database/index.js';
import type { BacklogJobEntity, BacklogJobKind, BacklogStep } from './backlog-job.entity.js';
import { BacklogJobsRepository } from './backlog-jobs.repository.js';
import { BacklogStepsRepository, type ReplaySelection } from './backlog-steps.repository.js';
import type { EndpointKey } from './webhook-endpoints.repository.js';

/** How to treat the backlog when an endpoint is enabled (D32). */
export interface BacklogChoice {
  readonly held: 'release' | 'discard';
  readonly failed: 'resend' | 'leave';
}

/** A job after the steps taken inside the call that started it. */
interface StartedJob {
  readonly id: string;
  readonly created: number;
  readonly steps: number;
}

/** Deliveries read per step, which takes a few tens of milliseconds. */
const STEP_SIZE = 2_000;
/** Steps taken inside the call that enables an endpoint: enough for a small backlog. */
const STEPS_AT_ONCE = 3;
const FIRST_STEPS: Readonly<Record<BacklogJobKind, BacklogStep>> = {
  release: 'release',
  resend: 'search',
  replay: 'count',
};
const NEXT_STEPS: Readonly<Partial<Record<BacklogStep, BacklogStep>>> = {
  search: 'resend',
  count: 'repeat',
  repeat: 'await',
};

/**
 * Starts backlog jobs and runs their steps. Each step is one transaction that includes the job's cursor, so a job that
 * is killed between steps loses nothing. The first steps run inside the call, which completes a small job; the worker
 * runs the others.
 */
@Injectable()
export class BacklogJobs {
  constructor(
    private readonly jobs: BacklogJobsRepository,
    private readonly steps: BacklogStepsRepository,
  ) {}

  /**
   * Releases held deliveries and resends failed ones, as chosen. Replaces an earlier release. Also cancels an earlier
   * resend if held deliveries are discarded and failed ones stay as they are. The caller has locked the endpoint.
   * Returns the number of deliveries resent immediately.
   */
  async settle(tx: Tx, key: EndpointKey, { held, failed }: BacklogChoice): Promise<number> {
    const isNothingLeft = held === 'discard' && failed === 'leave';
    await this.jobs.cancelSettling(tx, key.id, isNothingLeft ? ['release', 'resend'] : ['release']);
    const until = await databaseNow(tx);
    const failures: ReplaySelection = {
      ...{ endpointId: key.id, since: new Date(0), until },
      ...{ eventTypes: null, statuses: ['failed'] },
    };
    let steps = 0;
    if (held === 'release')
      ({ steps } = await this.start(tx, 'release', key, { ...failures, statuses: [] }, STEPS_AT_ONCE));
    if (failed === 'leave') return 0;
    return (await this.start(tx, 'resend', key, failures, STEPS_AT_ONCE - steps)).created;
  }

  /** Starts a replay, and counts its deliveries if there are few. Returns its id. */
  async replay(tx: Tx, key: EndpointKey, selection: ReplaySelection): Promise<string> {
    return (await this.start(tx, 'replay', key, selection, 1)).id;
  }

  /** Runs one step of a locked job, which the caller saves. `most` is the maximum number of deliveries to create. */
  async takeStep(tx: Tx, job: BacklogJobEntity, most?: number): Promise<void> {
    const { cursor, isMore } = await this.perform(tx, job, most);
    job.cursor = isMore ? cursor : null;
    if (isMore) return;
    const next = NEXT_STEPS[job.step];
    if (next) job.step = next;
    else job.status = 'completed';
  }

  private async start(
    tx: Tx,
    kind: BacklogJobKind,
    { partnerId }: EndpointKey,
    selection: ReplaySelection,
    limit: number,
  ): Promise<StartedJob> {
    const id = newId(kind === 'replay' ? 'rpl' : 'blg');
    await this.jobs.insert(tx, { ...selection, id, kind, partnerId, step: FIRST_STEPS[kind] });
    const job = await this.jobs.lockRunnable(tx, id);
    let steps = 0;
    for (; job?.status === 'running' && steps < limit; steps++) await this.takeStep(tx, job);
    if (job) await this.jobs.save(tx, job);
    return { id, created: job?.created ?? 0, steps };
  }

  private async perform(tx: Tx, job: BacklogJobEntity, most?: number): Promise<DayStep> {
    switch (job.step) {
      case 'release':
        return this.steps.release(tx, job, STEP_SIZE);
      case 'search':
        return this.steps.findLastSuccess(tx, job, STEP_SIZE);
      case 'count': {
        const { eventIds, ...page } = await this.steps.findMatches(tx, job, STEP_SIZE);
        job.total += eventIds.length;
        return page;
      }
      case 'resend':
      case 'repeat': {
        const { eventIds, ...page } = await this.steps.findMatches(tx, job, STEP_SIZE, most);
        job.created += await this.steps.insertDeliveries(tx, job, eventIds);
        job.total = Math.max(job.total, job.created);
        return page;
      }
      case 'await':
        return { cursor: null, isMore: (await this.jobs.countPending(tx, job.id)) > 0 };
    }
  }
}
