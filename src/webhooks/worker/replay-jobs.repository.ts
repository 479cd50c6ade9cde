import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { databaseNow, sql, type Tx } from '../../infra/database/index.js';
import { deliveryIdSql, deliveryIdStem } from '../webhook-delivery.entity.js';
import { WebhookReplayEntity } from '../webhook-replay.entity.js';

/** What a replay still has to do. */
export interface ReplayWork {
  /** Its deliveries that are not sent yet. */
  readonly pending: number;
  /** Whether it has chosen deliveries that it has not repeated yet. */
  readonly hasItems: boolean;
}

/** What a replay repeats: columns of the deliveries that it chose, a value for each. */
interface ChosenDeliveries {
  readonly taken: number;
  readonly places: readonly number[];
  readonly eventIds: readonly string[];
  readonly eventTypes: readonly string[];
}

type RunningReplay = Pick<WebhookReplayEntity, 'id' | 'endpointId' | 'partnerId' | 'since' | 'until'>;

/** SQL of the worker that makes the deliveries of replays, and removes what they leave. */
@Injectable()
export class ReplayJobsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

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

  /**
   * Puts a replay behind the others that run, unless its last step is less than `stepMs` ago: then it is behind them, and
   * its pace counts from that step. One that another worker has locked is passed over.
   */
  async putBehind(id: string, stepMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_replays SET advanced_at = clock_timestamp()
       WHERE id = (SELECT r.id FROM webhook_replays r
                   WHERE r.id = $1 AND r.status = 'running'
                     AND (r.advanced_at IS NULL OR r.advanced_at < clock_timestamp() - $2::int * interval '1 millisecond')
                   FOR UPDATE SKIP LOCKED)`,
      [id, stepMs],
    );
  }

  /** Locks a running replay, unless another worker is at it. */
  async lockRunning(tx: Tx, id: string): Promise<WebhookReplayEntity | null> {
    return tx.manager.findOne(WebhookReplayEntity, {
      where: { id, status: 'running' },
      lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
    });
  }

  async readWork(tx: Tx, id: string): Promise<ReplayWork> {
    const { rows } = await sql<{ pending: number; has_items: boolean }>(
      tx.manager,
      `SELECT (SELECT count(*)::int FROM webhook_deliveries WHERE replay_id = $1 AND status = 'pending') AS pending,
              EXISTS (SELECT 1 FROM webhook_replay_items WHERE replay_id = $1) AS has_items`,
      [id],
    );
    return { pending: rows[0]!.pending, hasItems: rows[0]!.has_items };
  }

  /**
   * Takes up to `limit` further deliveries that the replay chose, oldest first, and makes one of each whose event is
   * still kept: days may be dropped while a replay waits (D44). Answers how many it made and how many were gone; what
   * was gone stays the difference of `total` and `created`. The replay is locked.
   */
  async makeDeliveries(
    tx: Tx,
    replay: RunningReplay,
    mode: Mode,
    limit: number,
  ): Promise<{ made: number; gone: number }> {
    const { taken, ...chosen } = await this.takeItems(tx, replay, mode, limit);
    const made = await this.insertKept(tx, replay, mode, chosen);
    await sql(
      tx.manager,
      `UPDATE webhook_replays SET created = created + $2, advanced_at = clock_timestamp() WHERE id = $1`,
      [replay.id, made],
    );
    return { made, gone: taken - made };
  }

  private async takeItems(
    tx: Tx,
    { id, since, until }: RunningReplay,
    mode: Mode,
    limit: number,
  ): Promise<ChosenDeliveries> {
    const { rows } = await sql<{
      taken: number;
      places: number[];
      event_ids: string[];
      event_types: string[];
    }>(
      tx.manager,
      `WITH taken AS (
         DELETE FROM webhook_replay_items
         WHERE replay_id = $1 AND place IN (SELECT place FROM webhook_replay_items WHERE replay_id = $1
                                            ORDER BY place LIMIT $2)
         RETURNING place, delivery_id
       ), kept AS (
         SELECT taken.place, d.event_id, d.event_type FROM taken
         -- by id, one by one: a join that reads deliveries would read whole days of them
         CROSS JOIN LATERAL (SELECT event_id, event_type FROM webhook_deliveries
                             WHERE id = taken.delivery_id AND mode = $5
                               AND created_at >= $3 AND created_at < $4 LIMIT 1) AS d
       )
       SELECT (SELECT count(*)::int FROM taken) AS taken, coalesce(array_agg(place), '{}') AS places,
              coalesce(array_agg(event_id), '{}') AS event_ids, coalesce(array_agg(event_type), '{}') AS event_types
       FROM kept`,
      [id, limit, since, until, mode],
    );
    const { taken, places, event_ids: eventIds, event_types: eventTypes } = rows[0]!;
    return { taken, places, eventIds, eventTypes };
  }

  /** The ids are values, so that the plan has the days of these events alone. Answers how many it made. */
  private async insertKept(
    tx: Tx,
    { id, endpointId, partnerId }: RunningReplay,
    mode: Mode,
    { places, eventIds, eventTypes }: Omit<ChosenDeliveries, 'taken'>,
  ): Promise<number> {
    if (eventIds.length === 0) return 0;
    const { affected } = await sql(
      tx.manager,
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, replay_id,
                                       next_attempt_at)
       SELECT ${deliveryIdSql('$5')}, $2, $3, $4, c.event_id, c.event_type, 'replay', 'pending', $1,
              now() + c.place * interval '1 microsecond'
       FROM unnest($6::int[], $7::text[], $8::text[]) AS c (place, event_id, event_type)
       WHERE c.event_id IN (SELECT e.id FROM events e WHERE e.mode = $4 AND e.id = ANY ($7::text[]))`,
      [id, endpointId, partnerId, mode, deliveryIdStem(await databaseNow(tx)), places, eventIds, eventTypes],
    );
    return affected;
  }

  /** Replays after `after`, in id order, that have ended and left something of what they were to repeat. */
  async listEndedWithItems(after: string, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `SELECT r.id FROM webhook_replays r
       WHERE r.ended_at IS NOT NULL AND r.id > $1
         AND EXISTS (SELECT 1 FROM webhook_replay_items i WHERE i.replay_id = r.id)
       ORDER BY r.id LIMIT $2`,
      [after, limit],
    );
    return rows.map((row) => row.id);
  }

  /** Removes up to `limit` of what a replay that has ended was to repeat; answers how many. */
  async removeItems(id: string, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_replay_items WHERE replay_id = $1 AND place IN (
         SELECT place FROM webhook_replay_items WHERE replay_id = $1 ORDER BY place LIMIT $2)`,
      [id, limit],
    );
    return affected;
  }
}
