import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import {
  deliveryIdSql,
  deliveryIdStem,
  GIVEN_UP_COLUMNS,
  STATUS_CONDITIONS,
} from './webhook-delivery.entity.js';
import { WebhookReplayEntity } from './webhook-replay.entity.js';

/** Which deliveries a replay repeats: those of events, made in [since, until), that have ended (D33). */
export type ReplaySelection = Pick<
  WebhookReplayEntity,
  'endpointId' | 'since' | 'until' | 'eventTypes' | 'statuses'
>;

/** What became of the deliveries that a replay has made. */
export interface ReplayProgress {
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly discarded: number;
}

/** SQL of `webhook_replays` and of the deliveries that they make. */
@Injectable()
export class WebhookReplaysRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Begins a replay of what matches at this moment; whatever happens later changes nothing of it. */
  async insert(
    tx: Tx,
    replay: Pick<WebhookReplayEntity, 'id' | 'partnerId'> & ReplaySelection,
  ): Promise<void> {
    const { id, partnerId, endpointId, since, until, eventTypes, statuses } = replay;
    const fixed = { id, partnerId, endpointId, since, until, eventTypes, statuses };
    await tx.manager.insert(WebhookReplayEntity, { ...fixed, status: 'running', total: 0 });
    const parameters = parametersOf(replay);
    await sql(
      tx.manager,
      `WITH items AS (
         INSERT INTO webhook_replay_items (replay_id, place, delivery_id)
         SELECT $${parameters.length + 1}, row_number() OVER (ORDER BY t.created_at, t.id), t.id
         FROM webhook_deliveries t WHERE ${matching(replay)}
         RETURNING 1
       )
       UPDATE webhook_replays SET total = (SELECT count(*) FROM items) WHERE id = $${parameters.length + 1}`,
      [...parameters, id],
    );
  }

  async find(id: string, tx?: Tx): Promise<WebhookReplayEntity | null> {
    return (tx?.manager ?? this.manager).findOneBy(WebhookReplayEntity, { id });
  }

  /** Locks the replay: the worker that makes its deliveries waits. */
  async findForChange(tx: Tx, id: string): Promise<WebhookReplayEntity | null> {
    return tx.manager.findOne(WebhookReplayEntity, { where: { id }, lock: { mode: 'for_no_key_update' } });
  }

  async count(tx: Tx, selection: ReplaySelection): Promise<number> {
    const { rows } = await sql<{ total: number }>(
      tx.manager,
      `SELECT count(*)::int AS total FROM webhook_deliveries t WHERE ${matching(selection)}`,
      parametersOf(selection),
    );
    return rows[0]!.total;
  }

  async progressOf(
    { id, createdAt }: Pick<WebhookReplayEntity, 'id' | 'createdAt'>,
    tx?: Tx,
  ): Promise<ReplayProgress> {
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

  /** Deliveries of the replay that are not sent yet. */
  async countPending(tx: Tx, id: string): Promise<number> {
    const { rows } = await sql<{ pending: number }>(
      tx.manager,
      `SELECT count(*)::int AS pending FROM webhook_deliveries WHERE replay_id = $1 AND status = 'pending'`,
      [id],
    );
    return rows[0]!.pending;
  }

  /**
   * Replays that have something to do, for endpoints that can take it; those of disabled ones wait. Whose last step is
   * longest ago comes first.
   */
  async listRunning(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `SELECT r.id FROM webhook_replays r JOIN webhook_endpoints w ON w.id = r.endpoint_id
       WHERE r.status = 'running' AND (w.enabled OR w.deleted_at IS NOT NULL)
       ORDER BY r.advanced_at NULLS FIRST, r.id LIMIT $1`,
      [limit],
    );
    return rows.map((row) => row.id);
  }

  /** Locks a running replay, unless another worker is at it. */
  async lockRunning(tx: Tx, id: string): Promise<WebhookReplayEntity | null> {
    return tx.manager.findOne(WebhookReplayEntity, {
      where: { id, status: 'running' },
      lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
    });
  }

  /** Makes up to `limit` further deliveries, oldest first; answers how many. The replay is locked. */
  async makeDeliveries(
    tx: Tx,
    { id, since, until }: Pick<WebhookReplayEntity, 'id' | 'since' | 'until'>,
    limit: number,
  ): Promise<number> {
    const { rows } = await sql<{ made: number }>(
      tx.manager,
      `WITH taken AS (
         DELETE FROM webhook_replay_items
         WHERE replay_id = $1 AND place IN (SELECT place FROM webhook_replay_items WHERE replay_id = $1
                                            ORDER BY place LIMIT $2)
         RETURNING place, delivery_id
       ), made AS (
         INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, replay_id,
                                         next_attempt_at)
         SELECT ${deliveryIdSql('$3')}, d.endpoint_id, d.partner_id, d.mode, d.event_id, d.event_type, 'replay', 'pending',
                $1, now() + taken.place * interval '1 microsecond'
         FROM taken
         -- by id, one by one: a join that reads deliveries would read whole days of them
         CROSS JOIN LATERAL (SELECT * FROM webhook_deliveries
                             WHERE id = taken.delivery_id AND created_at >= $4 AND created_at < $5 LIMIT 1) AS d
       )
       UPDATE webhook_replays r SET created = r.created + (SELECT count(*) FROM taken), advanced_at = clock_timestamp()
       WHERE r.id = $1
       RETURNING (SELECT count(*)::int FROM taken) AS made`,
      [id, limit, deliveryIdStem(), since, until],
    );
    return rows[0]!.made;
  }

  /** What was not repeated by then is not. */
  async end(tx: Tx, id: string, status: 'completed' | 'canceled'): Promise<void> {
    await sql(
      tx.manager,
      `WITH ended AS (
         UPDATE webhook_replays SET status = $2, ended_at = statement_timestamp()
         WHERE id = $1 AND status = 'running' RETURNING id
       )
       DELETE FROM webhook_replay_items WHERE replay_id IN (SELECT id FROM ended)`,
      [id, status],
    );
  }

  /** Gives up what the replay has made and is not sent yet. */
  async discardPending(tx: Tx, id: string): Promise<void> {
    await sql(
      tx.manager,
      `WITH chosen AS (
         SELECT id, coalesce(lease_until > statement_timestamp(), false) AS leased FROM webhook_deliveries
         WHERE replay_id = $1 AND status = 'pending' ORDER BY id FOR UPDATE
       ), under_way AS (
         -- the record of the attempt's outcome ends it
         UPDATE webhook_deliveries SET status = 'discarding', next_attempt_at = NULL
         WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE leased)
       ), given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE NOT leased)
         RETURNING ${GIVEN_UP_COLUMNS}
       )
       INSERT INTO webhook_deliveries (${GIVEN_UP_COLUMNS}, status, ended_at)
       SELECT ${GIVEN_UP_COLUMNS}, 'discarded', statement_timestamp() FROM given_up`,
      [id],
    );
  }
}

/** Conditions over a delivery `t`; its parameters come first in the statement. */
function matching({ statuses }: ReplaySelection): string {
  return `t.endpoint_id = $1 AND t.kind = 'event' AND t.created_at >= $2 AND t.created_at < $3
    AND ($4::text[] IS NULL OR t.event_type = ANY ($4))
    AND (${statuses.map((status) => STATUS_CONDITIONS[status]).join(' OR ')})`;
}

function parametersOf({ endpointId, since, until, eventTypes }: ReplaySelection): SqlParameter[] {
  return [endpointId, since, until, eventTypes];
}
