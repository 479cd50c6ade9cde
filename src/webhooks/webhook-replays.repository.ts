import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { oldestDay } from '../infra/partition-days.js';
import {
  type DayWindow,
  laterDayWindows,
  readByDay,
  sql,
  type SqlParameter,
  type Tx,
  type WindowRows,
} from '../infra/database/index.js';
import { DELIVERY_TABLES } from './delivery-days.js';
import { IN_FLIGHT, STATUS_CONDITIONS, STORE_GIVEN_UP } from './webhook-delivery.entity.js';
import { WebhookReplayEntity } from './webhook-replay.entity.js';

/** A dry run counts so far; a count that is this is "at least". */
export const MOST_COUNTED = 10_000;

/** Which deliveries a replay repeats: those of events, made in [since, until), that have ended (D33). */
export type ReplaySelection = Pick<
  WebhookReplayEntity,
  'endpointId' | 'since' | 'until' | 'eventTypes' | 'statuses'
>;

/** What became of the deliveries that a replay has made. */
export interface ReplayProgress {
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly discarded: number;
}

/** Where choosing goes on; `at` is null at its beginning. A text: a Date would cut microseconds. */
interface ChoosingStart {
  readonly mode: Mode;
  readonly at: string | null;
  readonly last: string;
}

interface ChoosingStep {
  readonly id: string;
  readonly selection: ReplaySelection;
  readonly start: ChoosingStart;
  readonly window: DayWindow;
  readonly limit: number;
}

/** SQL of `webhook_replays` that starts, shows and ends them; their deliveries are made in `worker/`. */
@Injectable()
export class WebhookReplaysRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Begins a replay; what it repeats is chosen in steps. */
  async insert(
    tx: Tx,
    replay: Pick<WebhookReplayEntity, 'id' | 'partnerId'> & ReplaySelection,
  ): Promise<void> {
    const { id, partnerId, endpointId, since, until, eventTypes, statuses } = replay;
    const fixed = { id, partnerId, endpointId, since, until, eventTypes, statuses };
    await tx.manager.insert(WebhookReplayEntity, { ...fixed, status: 'running', total: 0, choosing: true });
  }

  /**
   * Chooses what the replay repeats from up to `limit` further deliveries of its endpoint, oldest first. What ended
   * after it began is passed over. The replay is locked.
   */
  async choose(tx: Tx, id: string, selection: ReplaySelection, limit: number): Promise<void> {
    const start = await this.startOf(tx, id);
    const from = new Date(Math.max(selection.since.getTime(), start.at === null ? 0 : Date.parse(start.at)));
    const oldest = await oldestDay(tx.manager, [DELIVERY_TABLES[start.mode]]);
    const windows = laterDayWindows(from < oldest ? null : from, oldest, selection.until);
    const { cursor, isMore } = await readByDay(windows, 'later', limit, (window, most) =>
      this.chooseFrom(tx, { id, selection, start, window, limit: most }),
    );
    await sql(
      tx.manager,
      `UPDATE webhook_replays SET choosing = $2, chosen_to_at = coalesce($3, chosen_to_at), chosen_to_id = coalesce($4, chosen_to_id)
       WHERE id = $1`,
      [id, isMore, cursor?.at ?? null, cursor?.id ?? null],
    );
  }

  private async chooseFrom(
    tx: Tx,
    { id, selection, start, window, limit }: ChoosingStep,
  ): Promise<WindowRows> {
    const { rows } = await sql<{ read: number; at: string | null; last: string | null }>(
      tx.manager,
      `WITH replay AS (SELECT r.total, r.created_at FROM webhook_replays r WHERE r.id = $5), page AS (
         SELECT t.id, t.created_at, ${matching(selection)}
                AND coalesce(t.delivered_at, t.failed_at, '-infinity') <= (SELECT created_at FROM replay) AS matches
         FROM webhook_deliveries t
         -- values, not what a subquery says: the plan must know how little it reads, and begin there
         WHERE t.endpoint_id = $1 AND t.mode = $9 AND t.created_at >= greatest($2, $7::timestamptz) AND t.created_at < $3
           AND (t.created_at, t.id) > ($7::timestamptz, $8::text)
           AND t.created_at >= $10::timestamptz AND t.created_at < $11::timestamptz
         ORDER BY t.created_at, t.id LIMIT $6
       ), items AS (
         INSERT INTO webhook_replay_items (replay_id, place, delivery_id)
         SELECT $5, (SELECT total FROM replay) + row_number() OVER (ORDER BY created_at, id), id FROM page WHERE matches
         RETURNING 1
       )
       UPDATE webhook_replays r SET total = r.total + (SELECT count(*) FROM items)
       FROM (SELECT) AS one
       LEFT JOIN (SELECT created_at, id FROM page ORDER BY created_at DESC, id DESC LIMIT 1) AS last ON true
       WHERE r.id = $5
       RETURNING (SELECT count(*)::int FROM page) AS read, last.created_at::text AS at, last.id AS last`,
      [
        ...[...parametersOf(selection), id, limit, start.at ?? '-infinity', start.last, start.mode],
        ...[window.from ?? '-infinity', window.to],
      ],
    );
    const { read, at, last } = rows[0]!;
    return { read, last: at === null || last === null ? null : { at, id: last } };
  }

  private async startOf(tx: Tx, id: string): Promise<ChoosingStart> {
    const { rows } = await sql<ChoosingStart>(
      tx.manager,
      `SELECT w.mode, r.chosen_to_at::text AS at, coalesce(r.chosen_to_id, '') AS last
       FROM webhook_replays r JOIN webhook_endpoints w ON w.id = r.endpoint_id WHERE r.id = $1`,
      [id],
    );
    return rows[0]!;
  }

  async find(id: string, tx?: Tx): Promise<WebhookReplayEntity | null> {
    return (tx?.manager ?? this.manager).findOneBy(WebhookReplayEntity, { id });
  }

  /** Locks the replay: the worker that makes its deliveries waits. */
  async findForChange(tx: Tx, id: string): Promise<WebhookReplayEntity | null> {
    return tx.manager.findOne(WebhookReplayEntity, { where: { id }, lock: { mode: 'for_no_key_update' } });
  }

  /** How many deliveries a replay would repeat, `most` at most. */
  async count(tx: Tx, selection: ReplaySelection, mode: Mode, most: number): Promise<number> {
    const { rows } = await sql<{ total: number }>(
      tx.manager,
      `SELECT count(*)::int AS total FROM (
         SELECT FROM webhook_deliveries t WHERE t.mode = $5 AND ${matching(selection)} LIMIT $6) AS counted`,
      [...parametersOf(selection), mode, most],
    );
    return rows[0]!.total;
  }

  /**
   * How many deliveries the replays that a partner has started within the last hour repeat; null while one of them is
   * still choosing. Whoever else asks waits for the end of `tx`, or two would not know of each other.
   */
  async startedLately(tx: Tx, partnerId: string): Promise<number | null> {
    await sql(tx.manager, `SELECT pg_advisory_xact_lock(hashtext('webhook_replays'), hashtext($1))`, [
      partnerId,
    ]);
    const { rows } = await sql<{ total: number; choosing: boolean }>(
      tx.manager,
      `SELECT coalesce(sum(total), 0)::int AS total, coalesce(bool_or(choosing), false) AS choosing FROM webhook_replays
       WHERE partner_id = $1 AND created_at > statement_timestamp() - interval '1 hour'`,
      [partnerId],
    );
    const { total, choosing } = rows[0]!;
    return choosing ? null : total;
  }

  async progressOf(
    { id, createdAt }: Pick<WebhookReplayEntity, 'id' | 'createdAt'>,
    tx?: Tx,
  ): Promise<ReplayProgress> {
    const { rows } = await sql<{ delivered: number; failed: number; pending: number; discarded: number }>(
      tx?.manager ?? this.manager,
      `SELECT count(*) FILTER (WHERE t.status = 'delivered')::int AS delivered,
              count(*) FILTER (WHERE t.status = 'failed')::int AS failed,
              count(*) FILTER (WHERE ${STATUS_CONDITIONS.pending} OR ${STATUS_CONDITIONS.held})::int AS pending,
              count(*) FILTER (WHERE ${STATUS_CONDITIONS.discarded})::int AS discarded
       FROM webhook_deliveries t WHERE t.replay_id = $1 AND t.created_at >= $2`,
      [id, createdAt],
    );
    return rows[0]!;
  }

  /** What was not repeated by then is not. */
  async end(tx: Tx, id: string, status: 'completed' | 'canceled'): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE webhook_replays SET status = $2, choosing = false, ended_at = statement_timestamp()
       WHERE id = $1 AND status = 'running'`,
      [id, status],
    );
  }

  /** Gives up what the replay has made and is not sent yet. */
  async discardPending(tx: Tx, id: string): Promise<void> {
    await sql(
      tx.manager,
      `WITH chosen AS (
         SELECT d.id, ${IN_FLIGHT} AS in_flight FROM webhook_deliveries d
         WHERE d.replay_id = $1 AND d.status = 'pending' ORDER BY d.id FOR UPDATE OF d
       ), under_way AS (
         -- the record of the attempt's outcome ends it
         UPDATE webhook_deliveries SET status = 'discarding', next_attempt_at = NULL
         WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE in_flight)
       ), given_up AS (
         DELETE FROM webhook_deliveries WHERE status = 'pending' AND id IN (SELECT id FROM chosen WHERE NOT in_flight)
         ${STORE_GIVEN_UP}`,
      [id],
    );
  }
}

/** Conditions over a delivery `t`; its parameters come first in the statement. */
function matching({ statuses }: ReplaySelection): string {
  return `t.endpoint_id = $1 AND t.kind = 'event' AND t.created_at >= $2 AND t.created_at < $3
    AND ($4::text[] IS NULL OR t.event_type = ANY ($4))
    AND (${statuses.map((status) => STATUS_CONDITIONS[status]).join(' OR ')})`;
}

function parametersOf({ endpointId, since, until, eventTypes }: ReplaySelection): SqlParameter[] {
  return [endpointId, since, until, eventTypes];
}
