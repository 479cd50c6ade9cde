import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { readAgeSeconds, readWithin, sql } from '../../infra/database/index.js';
import type { DeliveryKind, DeliveryStatus } from '../delivery.js';
import { IS_KEPT, IS_OPEN } from '../webhook-delivery.entity.js';
import { type EndpointStatus, TAKES_ATTEMPTS } from '../webhook-endpoint.entity.js';

export interface DeliveryCount {
  readonly kind: DeliveryKind;
  readonly status: DeliveryStatus;
  readonly count: number;
}

/** Counts stop here: beyond this the exact size of a backlog does not matter. */
export const MAX_OPEN_COUNTED = 100_000;

/**
 * SQL over all pending deliveries: counts for operators (D33), and purges of rows that nothing refers to any more
 * (D44).
 */
@Injectable()
export class BacklogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Purges ended backlog jobs. */
  async purgeJobs(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_backlog_jobs WHERE id = ANY (ARRAY(
         SELECT j.id FROM webhook_backlog_jobs j WHERE j.ended_at < now() - $1::int * interval '1 day'
         LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  /** Purges deleted endpoints without remaining references; their ended deliveries are dropped with their days. */
  async purgeEndpoints(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_endpoints WHERE id = ANY (ARRAY(
         SELECT w.id FROM webhook_endpoints w
         WHERE w.deleted_at < now() - $1::int * interval '1 day'
           AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.${IS_OPEN})
           AND NOT EXISTS (SELECT 1 FROM webhook_backlog_jobs j WHERE j.endpoint_id = w.id)
         LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  /** Endpoints by status; deleted ones are not counted. */
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

  /** Age in seconds of the oldest due delivery that could be sent; 0 when there is none. */
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
       WHERE ${TAKES_ATTEMPTS}`,
    );
  }

  /** Counts open deliveries up to MAX_OPEN_COUNTED. @throws Error when it takes too long */
  async countOpen(): Promise<readonly DeliveryCount[]> {
    return readWithin(this.manager, async (manager) => {
      const { rows } = await sql<DeliveryCount>(
        manager,
        // Read in the order of the pending index: the table may hold millions of ended rows.
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
        [MAX_OPEN_COUNTED],
      );
      return rows;
    });
  }
}
