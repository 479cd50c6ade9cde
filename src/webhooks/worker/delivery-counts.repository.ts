import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';
import { DELIVERY_STATUSES, type DeliveryKind, type DeliveryStatus } from '../delivery.js';
import { STATUS_CONDITIONS } from '../webhook-delivery.entity.js';
import type { EndpointStatus } from '../webhook-endpoint.entity.js';

/** The counters of D33 and what stands beside them, at one time. */
export interface DeliveryCounts {
  readonly deliveries: readonly { kind: DeliveryKind; status: DeliveryStatus; count: number }[];
  readonly endpoints: readonly { status: EndpointStatus; count: number }[];
  readonly oldestDueSeconds: number;
}

const STATUS = `CASE ${DELIVERY_STATUSES.map((status) => `WHEN ${STATUS_CONDITIONS[status]} THEN '${status}'`).join(' ')} END`;

const COUNT_LIMIT = '3s';

/** SQL of the operator metrics. */
@Injectable()
export class DeliveryCountsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** @throws Error when PostgreSQL takes longer than COUNT_LIMIT: a metric must not load it more than the work does */
  async count(): Promise<DeliveryCounts> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      await sql(manager, `SET LOCAL statement_timeout = '${COUNT_LIMIT}'`);
      return this.countIn(manager);
    });
  }

  private async countIn(manager: EntityManager): Promise<DeliveryCounts> {
    const deliveries = await sql<DeliveryCounts['deliveries'][number]>(
      manager,
      `SELECT t.kind, ${STATUS} AS status, count(*)::int AS count FROM webhook_deliveries t GROUP BY 1, 2`,
    );
    const endpoints = await sql<DeliveryCounts['endpoints'][number]>(
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
    return {
      deliveries: deliveries.rows,
      endpoints: endpoints.rows,
      oldestDueSeconds: oldest.rows[0]!.seconds,
    };
  }
}
