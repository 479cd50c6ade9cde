import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { oldestDay } from '../infra/partition-days.js';
import {
  databaseNow,
  type DayStep,
  type DayWindow,
  dayWindows,
  laterDayWindows,
  readByDay,
  sql,
  type SqlParameter,
  type Tx,
  type WindowRows,
} from '../infra/database/index.js';
import {
  type BacklogRequest,
  type BacklogRequestRow,
  type BacklogStep,
  toCursor,
  toRequest,
} from './backlog-request.js';
import { DELIVERY_TABLES } from './delivery-days.js';
import { deliveryIdSql, deliveryIdStem } from './webhook-delivery.entity.js';

interface PageRow {
  read: number;
  at: string | null;
  id: string | null;
}

/** SQL of `webhook_backlog_requests`, and of their steps over deliveries. No step reads more than its limit. */
@Injectable()
export class BacklogRequestsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * The endpoint's only request. A resend that an earlier one promised and has not finished stays promised, with its
   * time: what was resent already is passed over. One that is asked for besides begins after it.
   */
  async replace(tx: Tx, endpointId: string, step: BacklogStep, resend: boolean): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO webhook_backlog_requests AS q (endpoint_id, step, resend) VALUES ($1, $2, $3)
       ON CONFLICT (endpoint_id) DO UPDATE SET
         step = excluded.step,
         resend = q.resend OR excluded.resend, resend_again = q.resend AND (q.resend_again OR excluded.resend),
         requested_at = CASE WHEN q.resend THEN q.requested_at ELSE now() END,
         last_success_at = NULL, cursor_at = NULL, cursor_id = NULL`,
      [endpointId, step, resend],
    );
  }

  /** A resend of what has failed until now, by the endpoint's last 2xx until now. */
  async beginAgain(tx: Tx, endpointId: string): Promise<void> {
    await this.remove(tx, endpointId);
    await sql(
      tx.manager,
      `INSERT INTO webhook_backlog_requests (endpoint_id, step, resend) VALUES ($1, 'find_last_success', true)`,
      [endpointId],
    );
  }

  async remove(tx: Tx, endpointId: string): Promise<void> {
    await sql(tx.manager, 'DELETE FROM webhook_backlog_requests WHERE endpoint_id = $1', [endpointId]);
  }

  /** Endpoints with a request, the one first whose turn was longest ago. That of a deleted endpoint goes with its row. */
  async list(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ endpoint_id: string }>(
      this.manager,
      `SELECT q.endpoint_id FROM webhook_backlog_requests q JOIN webhook_endpoints w ON w.id = q.endpoint_id
       WHERE w.deleted_at IS NULL ORDER BY q.advanced_at NULLS FIRST, q.requested_at, q.endpoint_id LIMIT $1`,
      [limit],
    );
    return rows.map((row) => row.endpoint_id);
  }

  /** Locks the endpoint's request; null when it has none, or another worker is at it. */
  async lock(tx: Tx, endpointId: string): Promise<BacklogRequest | null> {
    const { rows } = await sql<BacklogRequestRow>(
      tx.manager,
      `SELECT q.endpoint_id, w.partner_id, w.mode, q.step, q.resend, q.requested_at::text, q.last_success_at::text,
              q.cursor_at::text, q.cursor_id, q.resent, q.resend_again
       FROM webhook_backlog_requests q JOIN webhook_endpoints w ON w.id = q.endpoint_id
       WHERE q.endpoint_id = $1 AND w.deleted_at IS NULL FOR UPDATE OF q SKIP LOCKED`,
      [endpointId],
    );
    return rows[0] ? toRequest(rows[0]) : null;
  }

  /** The endpoint goes behind the others, whatever its turn came to. */
  async markTurn(endpointId: string): Promise<void> {
    await sql(
      this.manager,
      'UPDATE webhook_backlog_requests SET advanced_at = clock_timestamp() WHERE endpoint_id = $1',
      [endpointId],
    );
  }

  async save(tx: Tx, request: BacklogRequest): Promise<void> {
    const { endpointId, step, lastSuccessAt, cursor, resent } = request;
    await sql(
      tx.manager,
      `UPDATE webhook_backlog_requests
       SET step = $2, last_success_at = $3, cursor_at = $4, cursor_id = $5, resent = $6
       WHERE endpoint_id = $1`,
      [endpointId, step, lastSuccessAt, cursor?.at ?? null, cursor?.id ?? null, resent],
    );
  }

  /**
   * Makes what waits due in the order of its creation, with the attempts that remain (D32). Reads what is due last
   * first: what is due only later is released by the first step.
   */
  async release(tx: Tx, { endpointId, cursor }: BacklogRequest, limit: number): Promise<DayStep> {
    const { rows } = await sql<PageRow>(
      tx.manager,
      `WITH page AS (
         SELECT d.id, d.next_attempt_at AS at FROM webhook_deliveries d
         WHERE d.endpoint_id = $1 AND d.status = 'pending'
           AND (d.next_attempt_at, d.id) < ($2::timestamptz, $3::text)
         ORDER BY d.next_attempt_at DESC, d.id DESC LIMIT $4
       ), released AS (
         UPDATE webhook_deliveries SET next_attempt_at = created_at
         WHERE status = 'pending' AND id = ANY (ARRAY(
           SELECT d.id FROM webhook_deliveries d
           WHERE d.id = ANY (ARRAY(SELECT id FROM page)) AND d.status = 'pending' AND d.next_attempt_at > d.created_at
             AND d.started_at IS NULL
           ORDER BY d.id FOR UPDATE))
       )
       SELECT (SELECT count(*)::int FROM page) AS read, last.at::text, last.id
       FROM (SELECT) AS one LEFT JOIN (SELECT at, id FROM page ORDER BY at, id LIMIT 1) AS last ON true`,
      [endpointId, cursor?.at ?? 'infinity', cursor?.id ?? '', limit],
    );
    const { read, last } = toWindowRows(rows[0]!);
    return { cursor: last, isMore: read === limit };
  }

  /** Reads what was delivered, the newest first, for the last 2xx before the request; tests do not count (D32). */
  async findLastSuccess(
    tx: Tx,
    request: BacklogRequest,
    limit: number,
  ): Promise<DayStep & { readonly lastSuccessAt: string | null }> {
    const { mode, cursor, requestedAt } = request;
    let { lastSuccessAt } = request;
    const windows = dayWindows(new Date(cursor?.at ?? requestedAt), await oldestDayOf(tx, mode));
    const step = await readByDay(windows, 'earlier', limit, async (window, most) => {
      const row = await readDelivered(tx, { ...request, lastSuccessAt }, window, most);
      lastSuccessAt = row.last_success_at;
      return toWindowRows(row);
    });
    return { ...step, lastSuccessAt };
  }

  /**
   * Owes again what failed between the last 2xx and the request, once per event (D32), oldest first; answers how many
   * besides. An event that was sent again since the request is passed over, whoever asked for it, and so is one that is
   * past its retention.
   */
  async resend(
    tx: Tx,
    request: BacklogRequest,
    limit: number,
  ): Promise<DayStep & { readonly resent: number }> {
    const { mode, cursor, requestedAt } = request;
    let resent = 0;
    const from = cursor && new Date(cursor.at);
    const windows = laterDayWindows(from, await oldestDayOf(tx, mode), new Date(requestedAt));
    const step = await readByDay(windows, 'later', limit, async (window, most) => {
      const row = await readFailed(tx, request, window, most);
      const before = request.resent + resent;
      if (row.owed.length > 0) resent += await insertResends(tx, { ...request, resent: before }, row.owed);
      return toWindowRows(row);
    });
    return { ...step, resent };
  }
}

function oldestDayOf({ manager }: Tx, mode: Mode): Promise<Date> {
  return oldestDay(manager, [DELIVERY_TABLES[mode]]);
}

const boundsOf = ({ from, to }: DayWindow): SqlParameter[] => [from ?? '-infinity', to];

async function readDelivered(
  tx: Tx,
  { endpointId, mode, cursor, requestedAt, lastSuccessAt }: BacklogRequest,
  window: DayWindow,
  limit: number,
): Promise<PageRow & { readonly last_success_at: string | null }> {
  const { rows } = await sql<PageRow & { last_success_at: string | null }>(
    tx.manager,
    `WITH page AS (
       SELECT d.id, d.created_at AS at, d.delivered_at, d.kind FROM webhook_deliveries d
       -- begins at the cursor: beside it, a later bound would be where the index begins to be read
       WHERE d.endpoint_id = $1 AND d.mode = $7 AND d.status = 'delivered'
         AND d.created_at >= $8::timestamptz AND d.created_at < $9::timestamptz
         AND d.created_at <= least($5, $2::timestamptz) AND (d.created_at, d.id) < ($2::timestamptz, $3::text)
       ORDER BY d.created_at DESC, d.id DESC LIMIT $4
     )
     SELECT (SELECT count(*)::int FROM page) AS read, last.at::text, last.id,
            greatest($6::timestamptz, (SELECT max(delivered_at) FROM page
                                       WHERE kind <> 'test' AND delivered_at <= $5::timestamptz))::text AS last_success_at
     FROM (SELECT) AS one LEFT JOIN (SELECT at, id FROM page ORDER BY at, id LIMIT 1) AS last ON true`,
    [
      ...[endpointId, cursor?.at ?? 'infinity', cursor?.id ?? '', limit, requestedAt, lastSuccessAt, mode],
      ...boundsOf(window),
    ],
  );
  return rows[0]!;
}

/** Events that failed and were not sent again are `owed`. */
async function readFailed(
  tx: Tx,
  { endpointId, mode, cursor, requestedAt, lastSuccessAt }: BacklogRequest,
  window: DayWindow,
  limit: number,
): Promise<PageRow & { readonly owed: readonly string[] }> {
  const { rows } = await sql<PageRow & { owed: string[] }>(
    tx.manager,
    `WITH page AS (
       SELECT d.id, d.created_at AS at, d.event_id, d.failed_at FROM webhook_deliveries d
       WHERE d.endpoint_id = $1 AND d.mode = $7 AND d.status = 'failed'
         AND d.created_at >= $8::timestamptz AND d.created_at < $9::timestamptz
         AND d.created_at <= $5::timestamptz AND (d.created_at, d.id) > ($2::timestamptz, $3::text)
       ORDER BY d.created_at, d.id LIMIT $4
     )
     SELECT (SELECT count(*)::int FROM page) AS read, last.at::text, last.id,
            ARRAY(SELECT DISTINCT d.event_id FROM page d
                  WHERE d.event_id IS NOT NULL AND d.failed_at > coalesce($6::timestamptz, '-infinity')
                    AND d.failed_at <= $5::timestamptz
                    AND NOT EXISTS (SELECT 1 FROM webhook_deliveries r
                                    WHERE r.event_id = d.event_id AND r.endpoint_id = $1 AND r.kind = 'resend'
                                      AND r.mode = $7 AND r.created_at >= $5::timestamptz)) AS owed
     FROM (SELECT) AS one
     LEFT JOIN (SELECT at, id FROM page ORDER BY at DESC, id DESC LIMIT 1) AS last ON true`,
    [
      ...[endpointId, cursor?.at ?? '-infinity', cursor?.id ?? '', limit, requestedAt, lastSuccessAt, mode],
      ...boundsOf(window),
    ],
  );
  return rows[0]!;
}

/**
 * The ids are values, so that the plan has the days of these events alone. Due by the events' times; after a discard not
 * before it, where claims begin to read (`IS_KEPT`), but in the same order, a microsecond apart.
 */
async function insertResends(
  tx: Tx,
  { endpointId, mode, resent }: BacklogRequest,
  eventIds: readonly string[],
): Promise<number> {
  const { affected } = await sql(
    tx.manager,
    `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                     next_attempt_at, created_at)
     SELECT ${deliveryIdSql('$4')}, $1, e.partner_id, e.mode, e.id, e.type, 'resend', 'pending',
            greatest(e.created_at, w.discard_before + ($5::int + e.place) * interval '1 microsecond'), now()
     FROM (SELECT id, partner_id, mode, type, created_at, row_number() OVER (ORDER BY created_at, id) AS place
           FROM events e WHERE e.mode = $2 AND e.id = ANY ($3::text[])) AS e
     JOIN webhook_endpoints w ON w.id = $1`,
    [endpointId, mode, eventIds, deliveryIdStem(await databaseNow(tx)), resent],
  );
  return affected;
}

function toWindowRows({ read, at, id }: PageRow): WindowRows {
  return { read, last: toCursor(at, id) };
}
