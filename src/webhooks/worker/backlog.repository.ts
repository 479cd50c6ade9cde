import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { readAgeSeconds, readWithin, sql } from '../../infra/database/index.js';
import type { DeliveryKind, DeliveryStatus } from '../delivery.js';
import { GIVEN_UP_COLUMNS, IS_KEPT, IS_OPEN } from '../webhook-delivery.entity.js';
import type { EndpointStatus } from '../webhook-endpoint.entity.js';

/** An endpoint that has given up what it owed before a time, as PostgreSQL writes it: to the microsecond. */
export interface GivingUp {
  readonly endpointId: string;
  readonly before: string;
}

export interface DeliveryCount {
  readonly kind: DeliveryKind;
  readonly status: DeliveryStatus;
  readonly count: number;
}

/** More than this is a backlog, and how much more does not matter. */
export const MOST_OPEN_COUNTED = 100_000;

const NOW = 'statement_timestamp()';

const INSERT_DISCARDED = `
  INSERT INTO webhook_deliveries (${GIVEN_UP_COLUMNS}, status, ended_at)
  SELECT ${GIVEN_UP_COLUMNS}, 'discarded', ${NOW} FROM given_up`;

/**
 * SQL over all that is owed: writes down, row by row, what one row of the endpoint has decided (D32, DELETE), and
 * counts for the operators (D33).
 */
@Injectable()
export class BacklogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Endpoints that owe something still and have given up what is older than some time. */
  async listGivingUp(): Promise<readonly GivingUp[]> {
    const { rows } = await sql<{ id: string; before: string }>(
      this.manager,
      `SELECT w.id, w.discard_before::text AS before FROM webhook_endpoints w
       WHERE w.discard_before IS NOT NULL
         AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.status = 'pending')`,
    );
    return rows.map(({ id, before }) => ({ endpointId: id, before }));
  }

  /**
   * Discards up to `limit` deliveries that the endpoint has given up, of those due at `dueFrom` and later when it is set;
   * answers how many. One with an attempt under way is
   * left to the record of its outcome, which counts when it is a 2xx.
   */
  async writeDiscards(endpointId: string, limit: number, dueFrom: string | null = null): Promise<number> {
    const { affected } = await sql(
      this.manager,
      // In the order of the index of what is pending: the table may hold millions that have ended.
      `WITH given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'pending' AND id = ANY (ARRAY(
           SELECT d.id FROM webhook_deliveries d
           WHERE d.endpoint_id = $1 AND d.status = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= ${NOW})
             AND d.created_at < (SELECT w.discard_before FROM webhook_endpoints w WHERE w.id = $1)
             AND ($3::timestamptz IS NULL OR d.next_attempt_at >= $3)
           ORDER BY d.next_attempt_at, d.id LIMIT $2 FOR UPDATE SKIP LOCKED))
         RETURNING ${GIVEN_UP_COLUMNS}
       )
       ${INSERT_DISCARDED}`,
      [endpointId, limit, dueFrom],
    );
    return affected;
  }

  /** Ends what was given up during an attempt that nobody records any more: its worker died, or gave it back. */
  async endAbandoned(limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `WITH given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'discarding' AND id = ANY (ARRAY(
           SELECT d.id FROM webhook_deliveries d
           WHERE d.status = 'discarding' AND (d.lease_until IS NULL OR d.lease_until <= ${NOW})
           LIMIT $1 FOR UPDATE SKIP LOCKED))
         RETURNING ${GIVEN_UP_COLUMNS}
       )
       ${INSERT_DISCARDED}`,
      [limit],
    );
    return affected;
  }

  /**
   * Discards up to `limit` deliveries that a disabled endpoint has held for `days` days, and their events as long: the
   * end of "held at least 30 days" (D32, D44). The lock of the endpoint lets nobody enable it meanwhile.
   */
  async discardHeld(mode: Mode, days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `WITH given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'pending' AND id = ANY (ARRAY(
           SELECT d.id FROM webhook_endpoints w JOIN webhook_deliveries d ON d.endpoint_id = w.id
           WHERE w.mode = $1 AND NOT w.enabled AND w.updated_at < now() - $2::int * interval '1 day'
             AND d.status = 'pending' AND d.created_at < now() - $2::int * interval '1 day'
             AND (d.lease_until IS NULL OR d.lease_until <= ${NOW})
           LIMIT $3 FOR SHARE OF w SKIP LOCKED FOR UPDATE OF d SKIP LOCKED))
         RETURNING ${GIVEN_UP_COLUMNS}
       )
       ${INSERT_DISCARDED}`,
      [mode, days, limit],
    );
    return affected;
  }

  async purgeReplays(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_replays WHERE id = ANY (ARRAY(
         SELECT r.id FROM webhook_replays r
         WHERE r.ended_at < now() - $1::int * interval '1 day'
           -- what it did not repeat is removed in steps before
           AND NOT EXISTS (SELECT 1 FROM webhook_replay_items i WHERE i.replay_id = r.id)
         LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  /** Deleted endpoints to which nothing refers any more; their ended deliveries go with their days. */
  async purgeEndpoints(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_endpoints WHERE id = ANY (ARRAY(
         SELECT w.id FROM webhook_endpoints w
         WHERE w.deleted_at < now() - $1::int * interval '1 day'
           AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.${IS_OPEN})
           AND NOT EXISTS (SELECT 1 FROM webhook_replays r WHERE r.endpoint_id = w.id)
         LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  /**
   * Forgets decisions that are carried out; two minutes are longer than any transaction that could still owe something.
   * Not while a backlog is resent: what it makes due is ordered by the decision.
   */
  async forgetOldDiscards(): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_endpoints w SET discard_before = NULL
       WHERE w.deleted_at IS NULL AND w.discard_before < now() - interval '2 minutes'
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before)
         AND NOT EXISTS (SELECT 1 FROM webhook_backlog_requests q WHERE q.endpoint_id = w.id)`,
    );
  }

  /** Endpoints by status; one that has been deleted has none. */
  async countEndpoints(): Promise<readonly { status: EndpointStatus; count: number }[]> {
    return readWithin(this.manager, async (manager) => {
      const { rows } = await sql<{ status: EndpointStatus; count: number }>(
        manager,
        `SELECT CASE WHEN NOT enabled THEN 'disabled' WHEN blocked_until > statement_timestamp() THEN 'blocked'
                     ELSE 'enabled' END AS status, count(*)::int AS count
         FROM webhook_endpoints WHERE deleted_at IS NULL GROUP BY 1`,
      );
      return rows;
    });
  }

  /** Age in seconds of the oldest delivery that is due and could be sent; 0 when there is none. */
  async oldestDueSeconds(): Promise<number> {
    return readAgeSeconds(
      this.manager,
      `SELECT coalesce(max(extract(epoch FROM statement_timestamp() - due.next_attempt_at)), 0)::float8 AS seconds
       FROM webhook_endpoints w
       CROSS JOIN LATERAL (
         SELECT d.next_attempt_at FROM webhook_deliveries d
         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND ${IS_KEPT}
         ORDER BY d.next_attempt_at, d.id LIMIT 1
       ) AS due
       WHERE w.enabled AND w.deleted_at IS NULL
         AND (w.blocked_until IS NULL OR w.blocked_until <= statement_timestamp())`,
    );
  }

  /** Deliveries that have not ended, the first MOST_OPEN_COUNTED of them. @throws Error when it takes long */
  async countOpen(): Promise<readonly DeliveryCount[]> {
    return readWithin(this.manager, async (manager) => {
      const { rows } = await sql<DeliveryCount>(
        manager,
        // In the order of the index of what is pending: the table may hold millions that have ended.
        `WITH open AS MATERIALIZED (
           SELECT d.kind, d.endpoint_id, d.created_at FROM webhook_deliveries d WHERE d.status = 'pending'
           ORDER BY d.endpoint_id, d.next_attempt_at, d.id LIMIT $1
         )
         SELECT o.kind, CASE WHEN o.created_at < w.discard_before THEN 'discarded' WHEN w.enabled THEN 'pending'
                             ELSE 'held' END AS status, count(*)::int AS count
         FROM open o JOIN webhook_endpoints w ON w.id = o.endpoint_id GROUP BY 1, 2
         UNION ALL
         -- given up while their last attempts are under way
         SELECT kind, 'discarded', count(*)::int FROM webhook_deliveries WHERE status = 'discarding' GROUP BY 1`,
        [MOST_OPEN_COUNTED],
      );
      return rows;
    });
  }
}
