import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { DAY_MS, HOUR_MS } from '../common/durations.js';
import { timeOfId } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { KeysetPages, type ListOptions, sql, type Tx } from '../infra/database/index.js';
import {
  type AttemptOutcome,
  type DeliveryEventType,
  type DeliveryStatus,
  type LoggedAttempt,
  type LoggedPhases,
  TEST_EVENT_TYPE,
} from './delivery.js';
import { oldestDay } from '../infra/partition-days.js';
import { DELIVERY_TABLES } from './delivery-days.js';
import { earliestDelivery, listedParts } from './listed-deliveries.js';
import { HAS_ENDED, IS_OPEN, WebhookDeliveryEntity } from './webhook-delivery.entity.js';

export interface DeliveryFilters {
  readonly status: DeliveryStatus | undefined;
  readonly eventType: DeliveryEventType | undefined;
  readonly eventId: string | undefined;
  /** Status code of the last attempt. */
  readonly statusCode: number | undefined;
  readonly outcome: AttemptOutcome | undefined;
  /** Inclusive; `createdBefore` is exclusive (D11). */
  readonly createdAfter: Date | undefined;
  readonly createdBefore: Date | undefined;
}

/** The endpoint whose deliveries are listed; it may be deleted. */
interface ListedEndpoint {
  readonly id: string;
  readonly mode: Mode;
}

export interface DeliveryWithLog {
  readonly delivery: WebhookDeliveryEntity;
  readonly attempts: readonly LoggedAttempt[];
  /** The stored body (D28). */
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

/** Counts stop here; this value means "at least". */
const COUNTED = 10_000;

/** SQL of `webhook_deliveries` that creates, reads and discards deliveries; sending is in `worker/`. */
@Injectable()
export class WebhookDeliveriesRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

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
   * Creates a delivery of the same event and bytes (D33). Returns the partner, or null when the source is a test, its
   * endpoint is deleted, or its event is past its retention.
   */
  async insertResend(
    tx: Tx,
    newId: string,
    source: Pick<WebhookDeliveryEntity, 'endpointId' | 'mode' | 'eventId' | 'eventType'>,
  ): Promise<string | null> {
    const { rows } = await sql<{ partner_id: string }>(
      tx.manager,
      `WITH source AS (
         SELECT w.id AS endpoint_id, w.partner_id, w.mode FROM webhook_endpoints w
         WHERE w.id = $2 AND w.deleted_at IS NULL AND EXISTS (SELECT 1 FROM events e WHERE e.id = $3 AND e.mode = $5)
         FOR KEY SHARE OF w
       ), inserted AS (
         INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                         next_attempt_at)
         SELECT $1, endpoint_id, partner_id, mode, $3, $4, 'resend', 'pending', now() FROM source
       )
       SELECT partner_id FROM source`,
      [newId, source.endpointId, source.eventId, source.eventType, source.mode],
    );
    return rows[0]?.partner_id ?? null;
  }

  /**
   * Number of deliveries that this transaction's discard covers, at most COUNTED. The caller has locked the endpoint.
   */
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

  /** The latest deliveries of these events, which belong to one partner and mode; newest first. */
  async listOfEvents(
    { partnerId, mode }: TenantScope,
    eventIds: readonly string[],
    limit: number,
  ): Promise<readonly WebhookDeliveryEntity[]> {
    if (eventIds.length === 0) return [];
    const since = eventIds.map(earliestDelivery).reduce(earliest);
    return this.manager
      .createQueryBuilder(WebhookDeliveryEntity, 't')
      .where('t.event_id IN (:...eventIds) AND t.partner_id = :partnerId AND t.mode = :mode')
      .andWhere('t.created_at >= :since')
      .setParameters({ eventIds, partnerId, mode, since })
      .orderBy('t.createdAt', 'DESC')
      .addOrderBy('t.id', 'DESC')
      .limit(limit)
      .getMany();
  }

  async list(
    endpoint: ListedEndpoint,
    filters: DeliveryFilters,
    options: ListOptions,
  ): Promise<Page<WebhookDeliveryEntity>> {
    const { status, createdBefore } = filters;
    const parts = listedParts(status);
    const matching = (part: string) => this.matching(endpoint, part, filters);
    const open = parts.open.map(matching);
    if (parts.ended.length === 0) return this.pages.listMerged(open, options);
    const oldest = await this.oldestListed(endpoint, filters);
    const newest = createdBefore === undefined ? null : earliest(new Date(), createdBefore);
    const days = { oldest, newest, ids: null, besides: open };
    return this.pages.listByDay(parts.ended.map(matching), options, days);
  }

  /** The oldest day that the list reads. */
  private async oldestListed(
    { mode }: ListedEndpoint,
    { createdAfter, eventId }: DeliveryFilters,
  ): Promise<Date> {
    const bounds = [await oldestDay(this.manager, [DELIVERY_TABLES[mode]])];
    if (createdAfter !== undefined) bounds.push(createdAfter);
    if (eventId !== undefined) bounds.push(earliestDelivery(eventId));
    return bounds.reduce(latest);
  }

  private matching(
    { id: endpointId, mode }: ListedEndpoint,
    condition: string,
    { eventType, eventId, statusCode, outcome, createdAfter, createdBefore }: DeliveryFilters,
  ): SelectQueryBuilder<WebhookDeliveryEntity> {
    const query = this.manager
      .createQueryBuilder(WebhookDeliveryEntity, 't')
      .where('t.endpoint_id = :endpointId AND t.mode = :mode', { endpointId, mode })
      .andWhere(condition);
    if (eventType !== undefined) query.andWhere('t.event_type = :eventType', { eventType });
    if (eventId !== undefined) {
      const eventDay = earliestDelivery(eventId);
      query.andWhere('t.event_id = :eventId AND t.created_at >= :eventDay', { eventId, eventDay });
    }
    for (const condition of lastAttemptConditions(statusCode, outcome))
      query.andWhere(condition, { statusCode, outcome });
    if (createdAfter !== undefined) query.andWhere('t.created_at >= :createdAfter', { createdAfter });
    if (createdBefore !== undefined) query.andWhere('t.created_at < :createdBefore', { createdBefore });
    return query;
  }

  /** The delivery with its whole log from one snapshot, because an attempt may be recorded concurrently. */
  async findWithLog(id: string): Promise<DeliveryWithLog | null> {
    return this.manager.transaction('REPEATABLE READ', async (manager) => {
      const delivery = await findDelivery(manager, id);
      if (!delivery) return null;
      const attempts = await this.attemptsOf(manager, delivery);
      return { delivery, attempts, body: await this.bodyOf(manager, delivery) };
    });
  }

  /** The stored body (D28); null when the event is past its retention. */
  private async bodyOf(manager: EntityManager, delivery: WebhookDeliveryEntity): Promise<string | null> {
    const { id, mode, eventId, createdAt } = delivery;
    const { rows } =
      eventId === null
        ? await sql<{ body: string | null }>(
            manager,
            `SELECT test_body AS body FROM webhook_deliveries
             WHERE id = $1 AND mode = $2 AND created_at >= $3 AND created_at < $4`,
            [id, mode, createdAt, new Date(createdAt.getTime() + 1)],
          )
        : await sql<{ body: string | null }>(manager, 'SELECT body FROM events WHERE id = $1 AND mode = $2', [
            eventId,
            mode,
          ]);
    return rows[0]?.body ?? null;
  }

  /** Attempts are recorded between the delivery's creation and its end, which bounds the days to read. */
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

/** Each condition matches the predicate of its index. A delivery's last attempt is the one that delivers it. */
function lastAttemptConditions(
  statusCode: number | undefined,
  outcome: AttemptOutcome | undefined,
): readonly string[] {
  const conditions: string[] = [];
  if (statusCode !== undefined) conditions.push('t.last_status_code = :statusCode');
  if (outcome === 'delivered') conditions.push(`t.status = 'delivered'`);
  else if (outcome !== undefined)
    conditions.push(`t.last_outcome = :outcome`, `t.last_outcome <> 'delivered'`);
  return conditions;
}

const WEEK_MS = 7 * DAY_MS;

function latest(a: Date, b: Date): Date {
  return a > b ? a : b;
}

function earliest(a: Date, b: Date): Date {
  return a < b ? a : b;
}

/**
 * Searches open deliveries first: they may end meanwhile, but never reopen. An ended delivery was created within an
 * hour of the time in its id, because no transaction takes an hour and clocks rarely differ by one. If they do, the
 * search extends to a week and no further, because a search for an unknown id would otherwise lock every day.
 */
async function findDelivery(manager: EntityManager, id: string): Promise<WebhookDeliveryEntity | null> {
  const byId = (condition: string) =>
    manager
      .createQueryBuilder(WebhookDeliveryEntity, 't')
      .where('t.id = :deliveryId', { deliveryId: id })
      .andWhere(`t.${condition}`);
  const madeAt = timeOfId(id).getTime();
  const within = (ms: number) =>
    byId(HAS_ENDED)
      .andWhere('t.created_at >= :from AND t.created_at < :to', {
        from: new Date(madeAt - ms),
        to: new Date(madeAt + ms),
      })
      .getOne();
  return (await byId(IS_OPEN).getOne()) ?? (await within(HOUR_MS)) ?? within(WEEK_MS);
}
