import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import { type EntityManager, In } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { NOW, sql, type Tx } from '../infra/database/index.js';
import { BacklogJobEntity } from './backlog-job.entity.js';
import {
  matchesSelection,
  OF_SELECTION,
  type ReplaySelection,
  selectionParameters,
} from './backlog-steps.repository.js';
import { IN_FLIGHT, STATUS_CONDITIONS, STORE_GIVEN_UP } from './webhook-delivery.entity.js';

/** Outcomes of the deliveries that a replay has created. */
export interface ReplayProgress {
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly discarded: number;
}

/**
 * Condition for a job `j` that can continue. A replay counts even while its endpoint is disabled, and then waits. A
 * resend waits for a release and for an earlier resend of its endpoint: two at a time would resend the same events.
 */
const IS_RUNNABLE = `j.status = 'running' AND CASE j.kind
  WHEN 'replay' THEN j.step = 'count' OR EXISTS (SELECT FROM webhook_endpoints w WHERE w.id = j.endpoint_id
                                                   AND (w.enabled OR w.deleted_at IS NOT NULL))
  WHEN 'resend' THEN NOT EXISTS (SELECT FROM webhook_backlog_jobs o
                                 WHERE o.endpoint_id = j.endpoint_id AND o.status = 'running'
                                   AND (o.kind = 'release'
                                        OR o.kind = 'resend' AND (o.created_at, o.id) < (j.created_at, j.id)))
  ELSE true END`;

/** SQL of `webhook_backlog_jobs` and of the deliveries that replays have created. */
@Injectable()
export class BacklogJobsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  async insert(
    tx: Tx,
    job: Pick<BacklogJobEntity, 'id' | 'kind' | 'step' | 'partnerId'> & ReplaySelection,
  ): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO webhook_backlog_jobs (id, kind, step, partner_id, endpoint_id, since, until, event_types, statuses,
                                         discard_before)
       SELECT $1, $2, $3, $4, w.id, $6, $7, $8, $9, w.discard_before FROM webhook_endpoints w WHERE w.id = $5`,
      [
        job.id,
        job.kind,
        job.step,
        job.partnerId,
        job.endpointId,
        job.since,
        job.until,
        job.eventTypes,
        job.statuses,
      ],
    );
  }

  async findReplay(id: string, tx?: Tx): Promise<BacklogJobEntity | null> {
    return (tx?.manager ?? this.manager).findOneBy(BacklogJobEntity, { id, kind: 'replay' });
  }

  /** Locks the replay, so that no worker creates its deliveries in the meantime. */
  async findReplayForChange(tx: Tx, id: string): Promise<BacklogJobEntity | null> {
    return tx.manager.findOne(BacklogJobEntity, {
      where: { id, kind: 'replay' },
      lock: { mode: 'for_no_key_update' },
    });
  }

  /**
   * Ids of the jobs that can continue and whose last turn is longest ago. Among these, the job that has used the least
   * of its partner's shared replay rate comes first.
   */
  async listRunnable(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `SELECT id FROM (
         SELECT j.id, j.paced_to FROM webhook_backlog_jobs j WHERE ${IS_RUNNABLE}
         ORDER BY j.turn_at NULLS FIRST, j.id LIMIT $1) AS next
       ORDER BY paced_to NULLS FIRST, id`,
      [limit],
    );
    return rows.map((row) => row.id);
  }

  /** Moves the job behind the others, whatever the result of its turn. False if another worker has locked it. */
  async takeTurn(id: string): Promise<boolean> {
    const { affected } = await sql(
      this.manager,
      `UPDATE webhook_backlog_jobs SET turn_at = clock_timestamp()
       WHERE id = (SELECT id FROM webhook_backlog_jobs WHERE id = $1 FOR UPDATE SKIP LOCKED)`,
      [id],
    );
    return affected > 0;
  }

  /** Locks a job that can continue; null if it cannot, or if another worker has locked it. */
  async lockRunnable(tx: Tx, id: string): Promise<BacklogJobEntity | null> {
    return tx.manager
      .createQueryBuilder(BacklogJobEntity, 'j')
      .where('j.id = :id', { id })
      .andWhere(`(${IS_RUNNABLE})`)
      .setLock('pessimistic_write')
      .setOnLocked('skip_locked')
      .getOne();
  }

  /** Saves the progress of a locked job. */
  async save(tx: Tx, job: BacklogJobEntity): Promise<void> {
    const { id, status, step, cursor, total, created, pacedTo } = job;
    const ended = status === 'running' ? {} : { endedAt: () => NOW };
    await tx.manager.update(
      BacklogJobEntity,
      { id },
      { status, step, cursor, total, created, pacedTo, ...ended },
    );
  }

  /** Cancels an endpoint's running release and resend jobs. */
  async cancelSettling(tx: Tx, endpointId: string, kinds: readonly ('release' | 'resend')[]): Promise<void> {
    await tx.manager.update(
      BacklogJobEntity,
      { endpointId, status: 'running', kind: In(kinds) },
      { status: 'canceled', endedAt: () => NOW },
    );
  }

  async isResending(tx: Tx, endpointId: string): Promise<boolean> {
    return tx.manager.existsBy(BacklogJobEntity, { endpointId, status: 'running', kind: 'resend' });
  }

  /** Number of deliveries that a replay would repeat, at most `limit`. */
  async count(tx: Tx, selection: ReplaySelection, mode: Mode, limit: number): Promise<number> {
    const { rows } = await sql<{ total: number }>(
      tx.manager,
      `SELECT count(*)::int AS total FROM (
         SELECT FROM webhook_deliveries t
         WHERE ${OF_SELECTION} AND t.mode = $5 AND ${matchesSelection(selection)} LIMIT $6) AS counted`,
      [...selectionParameters(selection), mode, limit],
    );
    return rows[0]!.total;
  }

  /**
   * Number of deliveries repeated by the partner's replays of the last hour; null while one of them is still counting.
   * Concurrent callers wait for the end of `tx`. Otherwise they would not see each other's replays.
   */
  async startedLately(tx: Tx, partnerId: string): Promise<number | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('webhook_replays'), hashtext($1))`, [
      partnerId,
    ]);
    const { rows } = await sql<{ total: number; counting: boolean }>(
      tx.manager,
      `SELECT coalesce(sum(total), 0)::int AS total, coalesce(bool_or(step = 'count' AND status = 'running'), false) AS counting
       FROM webhook_backlog_jobs
       WHERE kind = 'replay' AND partner_id = $1 AND created_at > statement_timestamp() - interval '1 hour'`,
      [partnerId],
    );
    const { total, counting } = rows[0]!;
    return counting ? null : total;
  }

  async progressOf({ id, createdAt }: BacklogJobEntity, tx?: Tx): Promise<ReplayProgress> {
    const { rows } = await sql<{ delivered: number; failed: number; pending: number; discarded: number }>(
      tx?.manager ?? this.manager,
      `SELECT count(*) FILTER (WHERE t.status = 'delivered')::int AS delivered,
              count(*) FILTER (WHERE t.status = 'failed')::int AS failed,
              count(*) FILTER (WHERE ${STATUS_CONDITIONS.pending} OR ${STATUS_CONDITIONS.held})::int AS pending,
              count(*) FILTER (WHERE ${STATUS_CONDITIONS.discarded})::int AS discarded
       FROM webhook_deliveries t WHERE t.replay_id = $1 AND t.created_at >= $2`,
      [id, createdAt],
    );
    return rows[0]!;
  }

  async countPending(tx: Tx, id: string): Promise<number> {
    const { rows } = await sql<{ pending: number }>(
      tx.manager,
      `SELECT count(*)::int AS pending FROM webhook_deliveries WHERE replay_id = $1 AND status = 'pending'`,
      [id],
    );
    return rows[0]!.pending;
  }

  /** Discards deliveries that a replay has created and that are still unsent. */
  async discardPending(tx: Tx, id: string): Promise<void> {
    await sql(
      tx.manager,
      `WITH chosen AS (
         SELECT d.id, ${IN_FLIGHT} AS in_flight FROM webhook_deliveries d
         WHERE d.replay_id = $1 AND d.status = 'pending' ORDER BY d.id FOR UPDATE OF d
       ), under_way AS (
         -- the record of the attempt's outcome ends it
         UPDATE webhook_deliveries SET status = 'discarding', next_attempt_at = NULL
         WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE in_flight)
       ), given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE NOT in_flight)
         ${STORE_GIVEN_UP}`,
      [id],
    );
  }
}
