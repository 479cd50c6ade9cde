import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import {
  type EventFanOut,
  EventRecorder,
  type EventType,
  isNearNow,
  type RecordedEvent,
  type UsageLevels,
} from '../events/index.js';
import { NOW, prepared, sql, type Tx } from '../infra/database/index.js';
import { InjectNotifier, notifierModule, WorkerNotifier } from '../infra/jobs/index.js';
import { deliveryIdSql } from './webhook-delivery.entity.js';
import { TAKES_ATTEMPTS, TARGET_COLUMNS, type TargetRow, toTarget } from './webhook-endpoint.entity.js';
import { subscribesTo } from './subscriptions.js';
import type { StartedDelivery } from './worker/deliveries.repository.js';

/** BullMQ queue that wakes the owners of endpoints; a group is an endpoint id (D34). */
export const DELIVERY_JOBS = 'delivery-jobs';

/** Created once: a second dynamic module would open a second queue. */
export const DeliveryNotifierModule = notifierModule(DELIVERY_JOBS);

/** An endpoint owned by this process's worker, with a slot reserved for one new delivery. */
export interface ReservedSlot {
  readonly endpointId: string;
  /** Fence of the endpoint's lease. */
  readonly fence: string;
  begin(delivery: StartedDelivery): void;
  /** @param mayBeStarted whether the database may record the delivery as in flight */
  giveBack(mayBeStarted: boolean): void;
}

/** The worker of this process, which sends deliveries to its own endpoints without a claim. */
export interface BornStarted {
  /** Owner id of the process in endpoint leases. */
  readonly owner: string;
  reserve(partnerId: string, mode: Mode): readonly ReservedSlot[];
}

/**
 * Creates a delivery of each event for every endpoint of its partner and mode that subscribes to its type (D28).
 * Disabled endpoints hold theirs (D32). $1 event ids, $2 partners, $3 modes, $4 types, $5 the time in the ids. An
 * endpoint's first event is inserted as started if this process owns the endpoint and has a slot for it: $6 these
 * endpoints, $7 their fences, $8 this process. $9 usage levels, for endpoints that name them. Returns a row with the
 * endpoint's owner for each delivery to an enabled endpoint.
 */
const OWE = prepared(`
  WITH owed AS MATERIALIZED (
    SELECT ${deliveryIdSql(`'dlv_' || substr(e.id, 5, 11)`)} AS id, e.id AS event_id, e.type AS event_type,
           w.id AS endpoint_id, w.partner_id, w.mode, w.enabled, ${TARGET_COLUMNS}, ${TAKES_ATTEMPTS} AS takes_attempts
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $9::smallint[]) AS e (id, partner_id, mode, type, level)
    JOIN webhook_endpoints w ON w.partner_id = e.partner_id AND w.mode = e.mode
    WHERE w.deleted_at IS NULL AND ${subscribesTo('e.type')}
      AND (e.level IS NULL OR e.level = ANY (w.usage_levels)) AND ${isNearNow('$5')}
    -- an endpoint that is being deleted waits, or is not seen
    FOR KEY SHARE OF w
  ), starting AS MATERIALIZED (
    SELECT DISTINCT ON (o.endpoint_id) o.id, s.fence
    FROM unnest($6::text[], $7::bigint[]) AS s (endpoint_id, fence)
    JOIN webhook_endpoint_leases l ON l.endpoint_id = s.endpoint_id AND l.fence = s.fence AND l.owner = $8
      AND l.until > ${NOW}
    JOIN owed o ON o.endpoint_id = s.endpoint_id AND o.takes_attempts
    ORDER BY o.endpoint_id, o.event_id
  ), inserted AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                    next_attempt_at, started_at, started_fence)
    SELECT o.id, o.endpoint_id, o.partner_id, o.mode, o.event_id, o.event_type, 'event', 'pending', now(),
           CASE WHEN s.fence IS NOT NULL THEN ${NOW} END, s.fence
    FROM owed o LEFT JOIN starting s ON s.id = o.id
  )
  SELECT o.id, o.endpoint_id, o.event_id, s.fence AS started_fence, o.event_type, o.mode, o.url, o.secret,
         o.previous_secret, o.standard, l.owner
  FROM owed o
  LEFT JOIN starting s ON s.id = o.id
  LEFT JOIN webhook_endpoint_leases l ON l.endpoint_id = o.endpoint_id AND l.until > ${NOW}
  WHERE o.enabled`);

/** Usage levels of all endpoints of partners ($1) and modes ($2). */
const LEVELS = prepared(`
  SELECT w.partner_id, w.mode, array_agg(DISTINCT level ORDER BY level) AS levels
  FROM webhook_endpoints w, unnest(w.usage_levels) AS level
  WHERE w.partner_id = ANY ($1::text[]) AND w.mode = ANY ($2::text[]) AND w.deleted_at IS NULL
  GROUP BY w.partner_id, w.mode`);

interface OwedRow extends TargetRow {
  id: string;
  endpoint_id: string;
  event_id: string;
  started_fence: string | null;
  event_type: EventType;
  mode: Mode;
  owner: string | null;
}

/**
 * Creates the deliveries of recorded events (D28, D32). After the commit, this process's worker sends those inserted as
 * started, and the owners of the other endpoints are notified.
 */
@Injectable()
export class DeliveryFanOut implements EventFanOut, OnModuleInit {
  private worker: BornStarted | null = null;

  constructor(
    private readonly recorder: EventRecorder,
    @InjectNotifier(DELIVERY_JOBS) private readonly notifier: WorkerNotifier,
  ) {}

  onModuleInit(): void {
    this.recorder.register(this);
  }

  /** From now on, deliveries to this worker's endpoints may be inserted as started. */
  attach(worker: BornStarted): void {
    this.worker = worker;
  }

  async owe(tx: Tx, events: readonly RecordedEvent[], at: Date): Promise<void> {
    const slots = this.reserve(events);
    let rows: readonly OwedRow[] = [];
    // Register before the statement: the slots are released whatever its result.
    tx.afterCommit(
      () => this.announce(rows, slots, events),
      () => slots.forEach((slot) => slot.giveBack(true)),
    );
    ({ rows } = await sql<OwedRow>(tx.manager, OWE, [
      events.map(({ id }) => id),
      events.map(({ partnerId }) => partnerId),
      events.map(({ mode }) => mode),
      events.map(({ type }) => type),
      at,
      slots.map(({ endpointId }) => endpointId),
      slots.map(({ fence }) => fence),
      this.worker?.owner ?? null,
      events.map(({ usageLevel }) => usageLevel),
    ]));
  }

  async usageLevels(tx: Tx, scopes: readonly TenantScope[]): Promise<UsageLevels> {
    const { rows } = await sql<{ partner_id: string; mode: Mode; levels: number[] }>(tx.manager, LEVELS, [
      scopes.map(({ partnerId }) => partnerId),
      scopes.map(({ mode }) => mode),
    ]);
    const levels = new Map(rows.map((row) => [`${row.partner_id}:${row.mode}`, row.levels]));
    return ({ partnerId, mode }) => levels.get(`${partnerId}:${mode}`) ?? [];
  }

  private reserve(events: readonly RecordedEvent[]): readonly ReservedSlot[] {
    const { worker } = this;
    if (!worker) return [];
    const scopes = new Map(
      events.map(({ partnerId, mode }) => [`${partnerId}:${mode}`, { partnerId, mode }]),
    );
    return [...scopes.values()].flatMap(({ partnerId, mode }) => worker.reserve(partnerId, mode));
  }

  private announce(
    rows: readonly OwedRow[],
    slots: readonly ReservedSlot[],
    events: readonly RecordedEvent[],
  ): void {
    const bodies = new Map(events.map(({ id, body }) => [id, body]));
    const started = new Map(
      rows.filter((row) => row.started_fence !== null).map((row) => [row.endpoint_id, row]),
    );
    for (const slot of slots) {
      const row = started.get(slot.endpointId);
      if (row) slot.begin(toStartedDelivery(row, slot.fence, bodies.get(row.event_id)!));
      else slot.giveBack(false);
    }
    const due = rows.filter((row) => row.started_fence === null);
    for (const [id, owner] of new Map(due.map((row) => [row.endpoint_id, row.owner])))
      this.notifier.notify(id, owner ?? undefined);
  }
}

function toStartedDelivery(row: OwedRow, fence: string, body: string): StartedDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    mode: row.mode,
    kind: 'event',
    eventType: row.event_type,
    fence,
    countedAttempts: 0,
    interruptions: 0,
    ...toTarget(row),
    body,
    interruptedAgoMs: null,
  };
}
