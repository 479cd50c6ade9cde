import { Injectable } from '@nestjs/common';
import {
  databaseNow,
  type DayStep,
  type DayWindow,
  dayWindows,
  laterDayWindows,
  readByDay,
  type RowCursor,
  sql,
  type SqlParameter,
  type Tx,
  type WindowRows,
} from '../infra/database/index.js';
import { oldestDay } from '../infra/partition-days.js';
import type { BacklogJobEntity } from './backlog-job.entity.js';
import { DELIVERY_TABLES } from './delivery-days.js';
import { deliveryIdSql, deliveryIdStem, STATUS_CONDITIONS } from './webhook-delivery.entity.js';

/** Selects a replay's deliveries: ended ones of events created in [since, until) (D33). */
export type ReplaySelection = Pick<
  BacklogJobEntity,
  'endpointId' | 'since' | 'until' | 'eventTypes' | 'statuses'
>;

export function selectionParameters({
  endpointId,
  since,
  until,
  eventTypes,
}: ReplaySelection): SqlParameter[] {
  return [endpointId, since, until, eventTypes];
}

/** Condition for the deliveries `t` of a selection; uses the statement's first four parameters. */
export const OF_SELECTION = 't.endpoint_id = $1 AND t.created_at >= $2 AND t.created_at < $3';

/** Condition for the statuses and types that a selection names. */
export function matchesSelection({ statuses }: Pick<ReplaySelection, 'statuses'>): string {
  return `t.kind = 'event' AND ($4::text[] IS NULL OR t.event_type = ANY ($4))
    AND (${statuses.map((status) => STATUS_CONDITIONS[status]).join(' OR ')})`;
}

/** A replay repeats first deliveries that had ended, or were discarded, when it started (D33). */
const HAD_ENDED = `(t.ended_at <= (SELECT created_at FROM job) OR t.created_at < (SELECT discard_before FROM job))`;
/** A resend covers deliveries that failed between the last 2xx and its start (D32). */
const FAILED_SINCE_SUCCESS = `t.event_id IS NOT NULL AND ($4::text[] IS NULL OR t.event_type = ANY ($4))
  AND t.failed_at > coalesce((SELECT last_success_at FROM job), '-infinity')
  AND t.failed_at <= (SELECT created_at FROM job)`;
/**
 * A resend skips events that were resent after it began, at anyone's request. `OFFSET 0` forces a lookup by event,
 * because a lookup by endpoint would read every resend so far.
 */
const IS_NOT_RESENT = `NOT EXISTS (
  SELECT FROM (SELECT endpoint_id, kind FROM webhook_deliveries
               WHERE event_id = page.event_id AND mode = $5 AND created_at >= $13::timestamptz OFFSET 0) AS r
  WHERE r.endpoint_id = $1 AND r.kind = 'resend')`;

interface PageRow {
  read: number;
  at: string | null;
  id: string | null;
}

/** SQL of backlog job steps over deliveries. No step reads more than its limit. The caller has locked the job. */
@Injectable()
export class BacklogStepsRepository {
  /**
   * Makes held deliveries due in the order of their creation, with their remaining attempts (D32). Reads the latest due
   * times first, so that the first step releases the deliveries that would wait longest.
   */
  async release(tx: Tx, { endpointId, cursor }: BacklogJobEntity, limit: number): Promise<DayStep> {
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

  /** Searches delivered rows, newest first, for the last 2xx before the job; tests do not count (D32). */
  async findLastSuccess(tx: Tx, job: BacklogJobEntity, limit: number): Promise<DayStep> {
    const { cursor, until, mode } = job;
    const windows = dayWindows(cursor === null ? until : new Date(cursor.at), await oldestDayOf(tx, mode));
    return readByDay(windows, 'earlier', limit, (window, left) => readDelivered(tx, job, window, left));
  }

  /** Reads up to `limit` further deliveries, oldest first, and returns the event ids of at most `most` matches. */
  async findMatches(
    tx: Tx,
    job: BacklogJobEntity,
    limit: number,
    most = limit,
  ): Promise<DayStep & { readonly eventIds: readonly string[] }> {
    const { cursor, mode, since, until } = job;
    const oldest = await oldestDayOf(tx, mode);
    const from = cursor === null ? since : new Date(cursor.at);
    const windows = laterDayWindows(from < oldest ? null : from, oldest, until);
    const eventIds: string[] = [];
    const step = await readByDay(windows, 'later', limit, async (window, left) => {
      const wanted = Math.min(most, limit) - eventIds.length;
      const row = await readEnded(tx, job, window, { limit: left, most: wanted });
      eventIds.push(...row.event_ids);
      return toWindowRows(row);
    });
    return { ...step, eventIds };
  }

  /**
   * Creates a delivery for each event that still exists, because days may be dropped while a job waits (D44). Returns
   * the number created. A replay's deliveries are due now, resends at their events' times. After a discard, resends are
   * due in the same order but no earlier than the discard, a microsecond apart: claims start reading there (`IS_KEPT`).
   */
  async insertDeliveries(tx: Tx, job: BacklogJobEntity, eventIds: readonly string[]): Promise<number> {
    if (eventIds.length === 0) return 0;
    const isReplay = job.kind === 'replay';
    const { affected } = await sql(
      tx.manager,
      // Passing the ids as values restricts the plan to the days of these events.
      `INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, replay_id,
                                       next_attempt_at)
       SELECT ${deliveryIdSql('$1')}, $2, e.partner_id, e.mode, e.id, e.type, $3, 'pending', $4,
              ${isReplay ? 'now() + e.place' : 'greatest(e.created_at, w.discard_before + e.place)'}
       FROM (SELECT id, partner_id, mode, type, created_at,
                    ($5::int + row_number() OVER (ORDER BY created_at, id)) * interval '1 microsecond' AS place
             FROM events e WHERE e.mode = $6 AND e.id = ANY ($7::text[])) AS e
       JOIN webhook_endpoints w ON w.id = $2`,
      [
        ...[deliveryIdStem(await databaseNow(tx)), job.endpointId, job.kind, isReplay ? job.id : null],
        ...[job.created, job.mode, eventIds],
      ],
    );
    return affected;
  }
}

async function readDelivered(
  tx: Tx,
  { id, endpointId, mode, until, cursor }: BacklogJobEntity,
  window: DayWindow,
  limit: number,
): Promise<WindowRows> {
  const { rows } = await sql<PageRow>(
    tx.manager,
    `WITH page AS (
       SELECT d.id, d.created_at AS at, d.delivered_at, d.kind FROM webhook_deliveries d
       -- begins at the cursor: beside it, a later bound would be where the index begins to be read
       WHERE d.endpoint_id = $2 AND d.mode = $3 AND d.status = 'delivered'
         AND d.created_at >= $4::timestamptz AND d.created_at < $5::timestamptz
         AND d.created_at <= least($6, $7::timestamptz) AND (d.created_at, d.id) < ($7::timestamptz, $8::text)
       ORDER BY d.created_at DESC, d.id DESC LIMIT $9
     ), found AS (
       UPDATE webhook_backlog_jobs j
       SET last_success_at = greatest(j.last_success_at, (SELECT max(delivered_at) FROM page
                                                          WHERE kind <> 'test' AND delivered_at <= j.created_at))
       WHERE j.id = $1
     )
     SELECT (SELECT count(*)::int FROM page) AS read, last.at::text, last.id
     FROM (SELECT) AS one LEFT JOIN (SELECT at, id FROM page ORDER BY at, id LIMIT 1) AS last ON true`,
    [
      ...[id, endpointId, mode, ...boundsOf(window)],
      ...[until, cursor?.at ?? 'infinity', cursor?.id ?? '', limit],
    ],
  );
  return toWindowRows(rows[0]!);
}

/** Reads up to `limit` deliveries. If it stops earlier, after `most` matches, it reports `limit`: more may remain. */
async function readEnded(
  tx: Tx,
  job: BacklogJobEntity,
  window: DayWindow,
  { limit, most }: { readonly limit: number; readonly most: number },
): Promise<PageRow & { readonly event_ids: readonly string[] }> {
  const isReplay = job.kind === 'replay';
  const { rows } = await sql<PageRow & { event_ids: string[] }>(
    tx.manager,
    `WITH job AS (SELECT * FROM webhook_backlog_jobs WHERE id = $6), page AS MATERIALIZED (
       SELECT t.id, t.created_at AS at, t.event_id,
              ${isReplay ? `${matchesSelection(job)} AND ${HAD_ENDED}` : FAILED_SINCE_SUCCESS} AS matches
       FROM webhook_deliveries t
       -- values, not what a subquery says: the plan must know how little it reads, and begin there
       WHERE ${OF_SELECTION} AND t.mode = $5 ${isReplay ? '' : `AND t.status = 'failed'`}
         AND t.created_at >= $7::timestamptz AND (t.created_at, t.id) > ($7::timestamptz, $8::text)
         AND t.created_at >= $9::timestamptz AND t.created_at < $10::timestamptz
       ORDER BY t.created_at, t.id LIMIT $11
     ), chosen AS MATERIALIZED (
       -- reads the page in its order, and no further than the last match that is wanted
       SELECT at, id, event_id FROM page WHERE matches ${isReplay ? '' : `AND ${IS_NOT_RESENT}`} LIMIT $12
     ), passed AS (
       SELECT at, id FROM chosen WHERE (SELECT count(*) FROM chosen) = $12
       UNION ALL
       SELECT at, id FROM page WHERE (SELECT count(*) FROM chosen) < $12
     )
     SELECT CASE (SELECT count(*) FROM chosen) WHEN $12 THEN $11 ELSE (SELECT count(*) FROM page) END::int AS read,
            ARRAY(SELECT DISTINCT event_id FROM chosen) AS event_ids, last.at::text, last.id
     FROM (SELECT) AS one LEFT JOIN (SELECT at, id FROM passed ORDER BY at DESC, id DESC LIMIT 1) AS last ON true`,
    [
      ...[...selectionParameters(job), job.mode, job.id, job.cursor?.at ?? '-infinity', job.cursor?.id ?? ''],
      ...[...boundsOf(window), limit, most],
      ...(isReplay ? [] : [job.createdAt]),
    ],
  );
  return rows[0]!;
}

function oldestDayOf({ manager }: Tx, mode: BacklogJobEntity['mode']): Promise<Date> {
  return oldestDay(manager, [DELIVERY_TABLES[mode]]);
}

const boundsOf = ({ from, to }: DayWindow): SqlParameter[] => [from ?? '-infinity', to];

function toWindowRows({ read, at, id }: PageRow): WindowRows {
  const last: RowCursor | null = at === null || id === null ? null : { at, id };
  return { read, last };
}
