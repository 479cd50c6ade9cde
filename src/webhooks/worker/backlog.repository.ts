import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import type { DeliveryKind, DeliveryStatus } from '../delivery.js';
import type { EndpointStatus } from '../webhook-endpoint.entity.js';

export interface DeliveryCount {
  readonly kind: DeliveryKind;
  readonly status: DeliveryStatus;
  readonly count: number;
}

/** What is due and who may take it, at one time. */
export interface EndpointFacts {
  readonly endpoints: readonly { status: EndpointStatus; count: number }[];
  /** Age of the oldest delivery that is due and could be sent; 0 when there is none. */
  readonly oldestDueSeconds: number;
}

/** Each read by an index: they take milliseconds, however much has been delivered. */
const SHORT_LIMIT = '3s';
/** Reads the whole table, so it is asked for seldom. */
const ENDED_LIMIT = '60s';
/** More than this is a backlog, and how much more does not matter. */
export const MOST_OPEN_COUNTED = 100_000;

/**
 * SQL over all that is owed: writes down, row by row, what one row of the endpoint has decided (D32, DELETE), and
 * counts for the operators (D33).
 */
@Injectable()
export class BacklogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Endpoints that owe something still and have given up what is older than some time. */
  async listGivingUp(): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `SELECT w.id FROM webhook_endpoints w
       WHERE w.discard_before IS NOT NULL
         AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.status = 'pending')`,
    );
    return rows.map((row) => row.id);
  }

  /**
   * Discards up to `limit` deliveries that the endpoint has given up; answers how many. The lease of an attempt under
   * way is left, so that its outcome is still logged, and counted when it is a 2xx.
   */
  async writeDiscards(endpointId: string, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      // In the order of the index of what is pending: the table may hold millions that have ended.
      `UPDATE webhook_deliveries SET status = 'discarded', next_attempt_at = NULL
       WHERE id = ANY (ARRAY(
         SELECT d.id FROM webhook_deliveries d
         WHERE d.endpoint_id = $1 AND d.status = 'pending'
           AND d.created_at < (SELECT w.discard_before FROM webhook_endpoints w WHERE w.id = $1)
         ORDER BY d.next_attempt_at, d.id LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [endpointId, limit],
    );
    return affected;
  }

  /** Forgets decisions that are carried out; two minutes are longer than any transaction that could still owe something. */
  async forgetOldDiscards(): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_endpoints w SET discard_before = NULL
       WHERE w.deleted_at IS NULL AND w.discard_before < now() - interval '2 minutes'
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before)`,
    );
  }

  /** @throws Error when PostgreSQL takes longer than SHORT_LIMIT */
  async readEndpoints(): Promise<EndpointFacts> {
    return this.within(SHORT_LIMIT, async (manager) => {
      const endpoints = await sql<EndpointFacts['endpoints'][number]>(
        manager,
        `SELECT CASE WHEN NOT enabled THEN 'disabled' WHEN blocked_until > statement_timestamp() THEN 'blocked'
                     ELSE 'enabled' END AS status, count(*)::int AS count
         FROM webhook_endpoints WHERE deleted_at IS NULL GROUP BY 1`,
      );
      const oldest = await sql<{ seconds: number }>(
        manager,
        `SELECT coalesce(greatest(0, max(extract(epoch FROM statement_timestamp() - due.next_attempt_at))), 0)::float8
                AS seconds
         FROM webhook_endpoints w
         CROSS JOIN LATERAL (
           SELECT d.next_attempt_at FROM webhook_deliveries d
           WHERE d.endpoint_id = w.id AND d.status = 'pending'
             AND (w.discard_before IS NULL OR d.created_at >= w.discard_before)
           ORDER BY d.next_attempt_at, d.id LIMIT 1
         ) AS due
         WHERE w.enabled AND w.deleted_at IS NULL
           AND (w.blocked_until IS NULL OR w.blocked_until <= statement_timestamp())`,
      );
      return { endpoints: endpoints.rows, oldestDueSeconds: oldest.rows[0]!.seconds };
    });
  }

  /** Deliveries that have not ended, the first MOST_OPEN_COUNTED of them. @throws Error after SHORT_LIMIT */
  async countOpen(): Promise<readonly DeliveryCount[]> {
    return this.within(SHORT_LIMIT, async (manager) => {
      const { rows } = await sql<DeliveryCount>(
        manager,
        // In the order of the index of what is pending: the table may hold millions that have ended.
        `WITH open AS MATERIALIZED (
           SELECT d.kind, d.endpoint_id, d.created_at FROM webhook_deliveries d WHERE d.status = 'pending'
           ORDER BY d.endpoint_id, d.next_attempt_at, d.id LIMIT $1
         )
         SELECT o.kind, CASE WHEN o.created_at < w.discard_before THEN 'discarded' WHEN w.enabled THEN 'pending'
                             ELSE 'held' END AS status, count(*)::int AS count
         FROM open o JOIN webhook_endpoints w ON w.id = o.endpoint_id GROUP BY 1, 2`,
        [MOST_OPEN_COUNTED],
      );
      return rows;
    });
  }

  /** Deliveries that have ended. Reads all of them. @throws Error after ENDED_LIMIT */
  async countEnded(): Promise<readonly DeliveryCount[]> {
    return this.within(ENDED_LIMIT, async (manager) => {
      const { rows } = await sql<DeliveryCount>(
        manager,
        `SELECT kind, status, count(*)::int AS count FROM webhook_deliveries WHERE status <> 'pending' GROUP BY 1, 2`,
      );
      return rows;
    });
  }

  private async within<T>(limit: string, read: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.manager.transaction(async (manager) => {
      await sql(manager, `SELECT set_config('statement_timeout', $1, true)`, [limit]);
      return read(manager);
    });
  }
}
