import { Injectable, type OnModuleInit } from '@nestjs/common';
import { type EventFanOut, EventRecorder, isNearNow, type RecordedEvent } from '../events/index.js';
import { prepared, sql, type Tx } from '../infra/database/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';
import { deliveryIdSql } from './webhook-delivery.entity.js';

/** BullMQ queue of notifications for endpoints' deliveries; a group is an endpoint's id (D34). */
export const DELIVERY_JOBS = 'delivery-jobs';

/** Created once: a second dynamic module would open a second queue. */
export const DeliveryNotifierModule = notifierModule(DELIVERY_JOBS);

/**
 * The endpoints of each event's partner and mode that want it now (D28), disabled ones included, which hold it (D32): $1 event ids,
 * $2 partners, $3 modes, $4 types, $5 the time of the ids. Of the enabled ones, the worker process that sends to them.
 */
const OWE = prepared(`
  WITH owed AS (
    SELECT e.id AS event_id, e.type AS event_type, w.id AS endpoint_id, w.partner_id, w.mode, w.enabled
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS e (id, partner_id, mode, type)
    JOIN webhook_endpoints w ON w.partner_id = e.partner_id AND w.mode = e.mode
    WHERE w.deleted_at IS NULL AND (w.event_types IS NULL OR e.type = ANY (w.event_types)) AND ${isNearNow('$5')}
    -- an endpoint that is being deleted waits, or is not seen
    FOR KEY SHARE OF w
  ), inserted AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, next_attempt_at)
    SELECT ${deliveryIdSql(`'dlv_' || substr(event_id, 5, 11)`)}, endpoint_id, partner_id, mode, event_id, event_type,
           'event', 'pending', now()
    FROM owed
  )
  SELECT DISTINCT o.endpoint_id, l.owner FROM owed o
  LEFT JOIN webhook_endpoint_leases l ON l.endpoint_id = o.endpoint_id AND l.until > statement_timestamp()
  WHERE o.enabled`);

/** Owes recorded events to endpoints, and wakes the workers that send to them once they are committed (D28, D32). */
@Injectable()
export class DeliveryFanOut implements EventFanOut, OnModuleInit {
  constructor(
    private readonly recorder: EventRecorder,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  onModuleInit(): void {
    this.recorder.register(this);
  }

  async owe(tx: Tx, events: readonly RecordedEvent[], at: Date): Promise<void> {
    const { rows } = await sql<{ endpoint_id: string; owner: string | null }>(tx.manager, OWE, [
      events.map(({ id }) => id),
      events.map(({ partnerId }) => partnerId),
      events.map(({ mode }) => mode),
      events.map(({ type }) => type),
      at,
    ]);
    tx.afterCommit(() => {
      for (const { endpoint_id, owner } of rows) this.notifier.notify(endpoint_id, owner ?? undefined);
    });
  }
}
