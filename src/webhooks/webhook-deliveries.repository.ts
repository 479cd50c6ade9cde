import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { timeOfId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { RecordedEvent } from '../events/index.js';
import { KeysetPages, type ListOptions, sql, type Tx } from '../infra/database/index.js';
import {
  type AttemptOutcome,
  type DeliveryEventType,
  type DeliveryStatus,
  type LoggedAttempt,
  type LoggedPhases,
  TEST_EVENT_TYPE,
} from './delivery.js';
import { oldestDay } from '../infra/daily-partitions.js';
import { DELIVERY_TABLES } from './delivery-days.js';
import { deliveryIdSql, deliveryIdStem, IS_OPEN, WebhookDeliveryEntity } from './webhook-delivery.entity.js';

export interface DeliveryFilters {
  readonly status: DeliveryStatus | undefined;
  readonly eventType: DeliveryEventType | undefined;
  readonly eventId: string | undefined;
  /** RFC 3339 texts: a Date would cut microseconds. Inclusive and exclusive (D11). */
  readonly createdAfter: string | undefined;
  readonly createdBefore: string | undefined;
}

/** Whose deliveries are listed, also after its deletion. */
interface ListedEndpoint {
  readonly id: string;
  readonly mode: Mode;
}

export interface DeliveryWithLog {
  readonly delivery: WebhookDeliveryEntity;
  readonly attempts: readonly LoggedAttempt[];
  /** The bytes that are sent (D28). */
  readonly body: string | null;
}

interface AttemptRow {
  number: number;
  started_at: Date;
  outcome: AttemptOutcome;
  status_code: number | null;
  latency_ms: number;
  error: string | null;
  phases: LoggedPhases | null;
  request_headers: Record<string, string> | null;
  response_headers: Record<string, string> | null;
  response_body: string | null;
}

const ofEndpoint = (column: string): string =>
  `(SELECT ${column} FROM webhook_endpoints w WHERE w.id = :endpointId)`;
const KEPT = `t.status = 'pending' AND t.created_at >= coalesce(${ofEndpoint('w.discard_before')}, '-infinity')`;

/**
 * `STATUS_CONDITIONS` for the list of one endpoint, in parts that have no delivery in common. What is asked of the
 * endpoint is asked once and not for each delivery, so that each part is read by the index of its stored status.
 */
const LISTED: Readonly<Record<DeliveryStatus, readonly string[]>> = {
  pending: [`${KEPT} AND ${ofEndpoint('w.enabled')}`],
  held: [`${KEPT} AND NOT ${ofEndpoint('w.enabled')}`],
  discarded: [
    `t.status = 'discarded'`,
    `t.status = 'discarding'`,
    `t.status = 'pending' AND t.created_at < ${ofEndpoint('w.discard_before')}`,
  ],
  delivered: [`t.status = 'delivered'`],
  failed: [`t.status = 'failed'`],
};
/** Listed in the partition of what is open alone, which is no day's. */
const OPEN: ReadonlySet<DeliveryStatus | undefined> = new Set(['pending', 'held']);
/** A count that is this is "at least". */
const COUNTED = 10_000;

/** SQL of `webhook_deliveries` that makes, reads and gives up deliveries; sending is in `worker/`. */
@Injectable()
export class WebhookDeliveriesRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  /**
   * One delivery per event and matching endpoint, disabled ones included; answers the enabled endpoints. The share
   * lock is what a foreign key takes anyway; taken here, an endpoint that is being deleted is seen as deleted.
   */
  async insertForEvents(tx: Tx, events: readonly RecordedEvent[]): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      tx.manager,
      `WITH owed AS (
         SELECT e.id AS event_id, e.type AS event_type, w.id AS endpoint_id, w.partner_id, w.mode, w.enabled
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS e (id, type, partner_id, mode)
         JOIN webhook_endpoints w ON w.partner_id = e.partner_id AND w.mode = e.mode
         WHERE w.deleted_at IS NULL AND (w.event_types IS NULL OR e.type = ANY (w.event_types))
         FOR KEY SHARE OF w
       ), inserted AS (
         INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                         next_attempt_at)
         SELECT ${deliveryIdSql('$5')}, endpoint_id, partner_id, mode, event_id, event_type, 'event', 'pending', now()
         FROM owed
       )
       SELECT DISTINCT endpoint_id AS id FROM owed WHERE enabled`,
      [
        events.map((event) => event.id),
        events.map((event) => event.type),
        events.map((event) => event.partnerId),
        events.map((event) => event.mode),
        deliveryIdStem(),
      ],
    );
    return rows.map((row) => row.id);
  }

  async insertTest(tx: Tx, test: { id: string; endpointId: string; body: string }): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_type, kind, status, test_body,
                                       next_attempt_at)
       SELECT $1, id, partner_id, mode, '${TEST_EVENT_TYPE}', 'test', 'pending', $3, now()
       FROM webhook_endpoints WHERE id = $2`,
      [test.id, test.endpointId, test.body],
    );
  }

  /**
   * A new delivery of the same event and bytes (D33); answers the partner, or null when the source is a test, its
   * endpoint is deleted, or its event is past its retention.
   */
  async insertResend(
    tx: Tx,
    newId: string,
    source: Pick<WebhookDeliveryEntity, 'endpointId' | 'eventId' | 'eventType'>,
  ): Promise<string | null> {
    const { rows } = await sql<{ partner_id: string }>(
      tx.manager,
      `WITH source AS (
         SELECT w.id AS endpoint_id, w.partner_id, w.mode FROM webhook_endpoints w
         WHERE w.id = $2 AND w.deleted_at IS NULL AND EXISTS (SELECT 1 FROM events e WHERE e.id = $3)
         FOR KEY SHARE OF w
       ), inserted AS (
         INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                         next_attempt_at)
         SELECT $1, endpoint_id, partner_id, mode, $3, $4, 'resend', 'pending', now() FROM source
       )
       SELECT partner_id FROM source`,
      [newId, source.endpointId, source.eventId, source.eventType],
    );
    return rows[0]?.partner_id ?? null;
  }

  /** What the endpoint has just given up, at most COUNTED: the endpoint is locked meanwhile. */
  async countGivenUp(tx: Tx, endpointId: string): Promise<number> {
    const { rows } = await sql<{ count: number }>(
      tx.manager,
      `SELECT count(*)::int AS count FROM (
         SELECT 1 FROM webhook_deliveries
         WHERE endpoint_id = $1 AND status = 'pending' AND created_at < now() LIMIT ${COUNTED}
       ) AS given_up`,
      [endpointId],
    );
    return rows[0]!.count;
  }

  async find(id: string, tx?: Tx): Promise<WebhookDeliveryEntity | null> {
    return findDelivery(tx?.manager ?? this.manager, id);
  }

  async list(
    endpoint: ListedEndpoint,
    filters: DeliveryFilters,
    options: ListOptions,
  ): Promise<Page<WebhookDeliveryEntity>> {
    const { status, createdAfter, createdBefore } = filters;
    const parts = status === undefined ? [null] : LISTED[status];
    const queries = parts.map((part) => this.matching(endpoint, part, filters));
    if (OPEN.has(status)) return this.pages.listMerged(queries, options);
    const oldestKept = await oldestDay(this.manager, [DELIVERY_TABLES[endpoint.mode]]);
    const oldest = createdAfter === undefined ? oldestKept : latest(oldestKept, new Date(createdAfter));
    const newest = createdBefore === undefined ? null : earliest(new Date(), new Date(createdBefore));
    return this.pages.listByDay(queries, options, { oldest, newest, ids: null });
  }

  private matching(
    { id: endpointId, mode }: ListedEndpoint,
    condition: string | null,
    { eventType, eventId, createdAfter, createdBefore }: DeliveryFilters,
  ): SelectQueryBuilder<WebhookDeliveryEntity> {
    const query = this.manager
      .createQueryBuilder(WebhookDeliveryEntity, 't')
      .where('t.endpoint_id = :endpointId AND t.mode = :mode', { endpointId, mode });
    if (condition !== null) query.andWhere(condition);
    if (eventType !== undefined) query.andWhere('t.event_type = :eventType', { eventType });
    if (eventId !== undefined) query.andWhere('t.event_id = :eventId', { eventId });
    if (createdAfter !== undefined)
      query.andWhere('t.created_at >= :createdAfter::timestamptz', { createdAfter });
    if (createdBefore !== undefined)
      query.andWhere('t.created_at < :createdBefore::timestamptz', { createdBefore });
    return query;
  }

  /** The delivery with all that its log shows, of one snapshot: an attempt may be recorded meanwhile. */
  async findWithLog(id: string): Promise<DeliveryWithLog | null> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      const delivery = await findDelivery(manager, id);
      if (!delivery) return null;
      const attempts = await this.attemptsOf(manager, delivery);
      return { delivery, attempts, body: await this.bodyOf(manager, delivery) };
    });
  }

  /** The bytes that are sent (D28); null when the event is past its retention. */
  private async bodyOf(manager: EntityManager, delivery: WebhookDeliveryEntity): Promise<string | null> {
    const { id, eventId, createdAt } = delivery;
    const { rows } =
      eventId === null
        ? await sql<{ body: string | null }>(
            manager,
            `SELECT test_body AS body FROM webhook_deliveries WHERE id = $1 AND created_at >= $2 AND created_at < $3`,
            [id, createdAt, new Date(createdAt.getTime() + 1)],
          )
        : await sql<{ body: string | null }>(manager, 'SELECT body FROM events WHERE id = $1', [eventId]);
    return rows[0]?.body ?? null;
  }

  /** An attempt is recorded after its delivery was made, and not after it has ended. */
  private async attemptsOf(
    manager: EntityManager,
    { id, createdAt, endedAt }: WebhookDeliveryEntity,
  ): Promise<readonly LoggedAttempt[]> {
    const { rows } = await sql<AttemptRow>(
      manager,
      `SELECT number, started_at, outcome, status_code, latency_ms, error, phases, request_headers, response_headers,
              response_body
       FROM webhook_attempts
       WHERE delivery_id = $1 AND recorded_at >= $2 AND recorded_at < coalesce($3::timestamptz, 'infinity')
       ORDER BY number`,
      [id, createdAt, endedAt && new Date(endedAt.getTime() + 1)],
    );
    return rows.map((row) => ({
      number: row.number,
      startedAt: row.started_at,
      outcome: row.outcome,
      statusCode: row.status_code,
      latencyMs: row.latency_ms,
      error: row.error,
      phases: row.phases,
      requestHeaders: row.request_headers,
      responseHeaders: row.response_headers,
      responseBody: row.response_body,
    }));
  }
}

const DAY_MS = 86_400_000;

function latest(a: Date, b: Date): Date {
  return a > b ? a : b;
}

function earliest(a: Date, b: Date): Date {
  return a < b ? a : b;
}

/** What is open first: it may end meanwhile, and never opens again. */
async function findDelivery(manager: EntityManager, id: string): Promise<WebhookDeliveryEntity | null> {
  const byId = () =>
    manager.createQueryBuilder(WebhookDeliveryEntity, 't').where('t.id = :deliveryId', { deliveryId: id });
  const open = await byId().andWhere(`t.${IS_OPEN}`).getOne();
  if (open) return open;
  const madeAt = timeOfId(id).getTime();
  const nearby = await byId()
    .andWhere('t.created_at >= :from AND t.created_at < :to', {
      from: new Date(madeAt - DAY_MS),
      to: new Date(madeAt + DAY_MS),
    })
    .getOne();
  // The process that made the id may have had another clock than the database.
  return nearby ?? byId().getOne();
}
