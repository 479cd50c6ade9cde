import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import { idFloor } from '../common/ids.js';
import type { Mode } from '../common/mode.js';
import {
  KeysetPages,
  type ListOptions,
  modeIn,
  prepared,
  sql,
  toSafeInteger,
  type Tx,
} from '../infra/database/index.js';
import { dayOf, dayOfPartition, oldestDay } from '../infra/partition-days.js';
import type { EventData, EventType } from './event.js';
import type { EventSubject } from './event-subjects.repository.js';
import { EVENT_TABLES, eventTable } from './event-days.js';
import { EventEntity } from './event.entity.js';

export interface FeedItem {
  readonly position: number;
  readonly body: string;
}

/** A recorded event with its data. */
export type OrderEvent = {
  [Type in EventType]: {
    readonly id: string;
    readonly type: Type;
    readonly happenedAt: Date;
    readonly data: EventData[Type];
  };
}[EventType];

export interface FeedFilters {
  readonly type?: EventType | undefined;
  readonly subject?: EventSubject | undefined;
}

export interface FeedRange {
  readonly items: readonly FeedItem[];
  /** Every event up to this position has been searched, unless `items` reached the limit. */
  readonly completeTo: number;
}

/** Events for which a call waits: those of the partner, or of one of its orders. */
export interface AwaitedEvents {
  readonly partnerId: string;
  readonly orderId?: string | undefined;
}

/** Positions in one day's partition; those of neighboring days overlap. */
interface FeedDay {
  readonly day: Date;
  readonly first: number;
  readonly last: number;
}

/**
 * Range of ids to search for events without a position. Null: all ids, to find events of a process with a wrong clock.
 */
export type IdWindow = { readonly from: Date; readonly to: Date } | null;

/** Maximum days per statement. */
const MAX_DAYS = 16;

/** An arbitrary number that identifies this lock among the database's advisory locks. */
const POSITIONS_LOCK = 7_302_114;
/** Maximum difference between process clocks, which create ids, and the database's clock. */
const CLOCKS_DIFFER_MS = 3_600_000;
/** Maximum events that get positions in one transaction. */
export const POSITIONS_BATCH = 5_000;

const LIST = `SELECT position, body FROM events
  WHERE partner_id = $1 AND mode = $2 AND position > $3 AND ($4::text IS NULL OR type = $4)
    AND position <= $6 AND id >= $7 AND id < $8
  ORDER BY position LIMIT $5`;
/**
 * Reads all events of the order first, by `events_of_order`: they are few, and the planner would otherwise scan the
 * whole feed. Partner-written text cannot match an id in quotes, because its quotes are escaped in the body.
 */
const LIST_OF_SUBJECT = `WITH of_order AS MATERIALIZED (
    SELECT position, type, body FROM events
    WHERE partner_id = $1 AND mode = $2 AND id >= $7 AND id < $8
      AND substring(body FROM '"order_id":"([^"]+)"') = $9 AND position IS NOT NULL
  )
  SELECT position, body FROM of_order
  WHERE position > $3 AND position <= $6 AND ($4::text IS NULL OR type = $4) AND strpos(body, $10) > 0
  ORDER BY position LIMIT $5`;

/** The latest events of an order; materialized for the same reason. */
const LATEST_OF_ORDER = `WITH of_order AS MATERIALIZED (
    SELECT id, type, body, created_at FROM events
    WHERE partner_id = $1 AND mode = $2 AND id >= $3 AND substring(body FROM '"order_id":"([^"]+)"') = $4
  )
  SELECT id, type, body, created_at FROM of_order ORDER BY id DESC LIMIT $5`;

/** Runs twenty times a second while a call waits. */
const FEED_HEAD = prepared(`
  SELECT coalesce((SELECT max(last_position) FROM event_feed_days WHERE mode = $3), 0) AS head,
         EXISTS (SELECT FROM events WHERE position IS NULL AND id >= $1 AND id < $2 AND mode = $3) AS unpositioned`);

/** SQL of `events`. */
@Injectable()
export class EventsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async findById({ partnerId, mode }: ReadScope, id: string): Promise<EventEntity | null> {
    return this.manager.findOneBy(EventEntity, { partnerId, mode: modeIn(mode), id });
  }

  /** Any partner's event in any mode, for a caller that checks whether it may see the event. */
  async findOfAny(id: string): Promise<EventEntity | null> {
    return this.manager.findOneBy(EventEntity, { id });
  }

  /** The latest events that name the order, newest first. The partner and mode are the order's. */
  async listOfOrder(
    { partnerId, mode }: TenantScope,
    { orderId, since }: Pick<EventSubject, 'orderId' | 'since'>,
    limit: number,
  ): Promise<readonly OrderEvent[]> {
    const { rows } = await sql<{ id: string; type: EventType; body: string; created_at: Date }>(
      this.manager,
      LATEST_OF_ORDER,
      [partnerId, mode, idFloor('evt', since), orderId, limit],
    );
    return rows.map(({ id, type, body, created_at: happenedAt }) => {
      const { data } = JSON.parse(body) as { data: EventData[EventType] };
      return { id, type, happenedAt, data } as OrderEvent;
    });
  }

  /** Events in one mode or both, latest first, for support and the portal. */
  async listOfPartner(
    { partnerId, mode }: PartnerScope,
    type: EventType | undefined,
    options: ListOptions,
  ): Promise<Page<EventEntity>> {
    const query = this.manager
      .createQueryBuilder(EventEntity, 't')
      .where('t.partner_id = :partnerId', { partnerId });
    if (type !== undefined) query.andWhere('t.type = :type', { type });
    if (mode !== undefined) query.andWhere('t.mode = :mode', { mode });
    const tables = mode === undefined ? Object.values(EVENT_TABLES) : [EVENT_TABLES[mode]];
    const oldest = await oldestDay(this.manager, tables);
    return this.pages.listByDay([query], options, { oldest, newest: null, ids: 'evt' });
  }

  /**
   * At most `limit` events after `position`, in feed order. Reads the list of days first, so that no statement reads
   * days without new events. Positions assigned later are greater than `completeTo`.
   */
  async listAfter(
    scope: TenantScope,
    position: number,
    filters: FeedFilters,
    limit: number,
  ): Promise<FeedRange> {
    const days = await this.feedDays(scope.mode, position);
    const completeTo = Math.max(position, ...days.map(({ last }) => last));
    const items: FeedItem[] = [];
    let after = position;
    for (let next = 0, width = 1; after < completeTo && items.length < limit; width *= 2) {
      next += Math.min(width, MAX_DAYS);
      const upTo = next < days.length ? Math.max(after, days[next]!.first - 1) : completeTo;
      const since = filters.subject ? dayOf(filters.subject.since).getTime() : 0;
      const among = days.filter(
        ({ day, first, last }) => last > after && first <= upTo && day.getTime() >= since,
      );
      if (among.length > 0)
        items.push(...(await this.listBetween(scope, filters, { after, upTo, among }, limit - items.length)));
      after = upTo;
    }
    return { items, completeTo };
  }

  private async feedDays(mode: Mode, position: number): Promise<readonly FeedDay[]> {
    const { rows } = await sql<{ partition_name: string; first_position: string; last_position: string }>(
      this.manager,
      `SELECT partition_name, first_position, last_position FROM event_feed_days
       WHERE mode = $1 AND last_position > $2 ORDER BY first_position`,
      [mode, position],
    );
    return rows.map((row) => ({
      day: dayOfPartition(eventTable(mode), row.partition_name)!,
      first: toSafeInteger(row.first_position),
      last: toSafeInteger(row.last_position),
    }));
  }

  private async listBetween(
    scope: TenantScope,
    { type, subject }: FeedFilters,
    { after, upTo, among }: { after: number; upTo: number; among: readonly FeedDay[] },
    limit: number,
  ): Promise<readonly FeedItem[]> {
    const days = among.map(({ day }) => day.getTime());
    const { rows } = await sql<{ position: string; body: string }>(
      this.manager,
      subject ? LIST_OF_SUBJECT : LIST,
      [
        scope.partnerId,
        scope.mode,
        after,
        type ?? null,
        limit,
        upTo,
        idFloor('evt', new Date(Math.min(...days))),
        idFloor('evt', dayOf(new Date(Math.max(...days)), 1)),
        ...(subject ? [subject.orderId, `"${subject.id}"`] : []),
      ],
    );
    return rows.map((row) => ({ position: toSafeInteger(row.position), body: row.body }));
  }

  /**
   * Assigns positions to committed events without one, in one mode or both, and returns their number. Only one
   * transaction at a time does so, under a lock held until its commit. A smaller position therefore never appears after
   * a reader has seen a greater one (D39).
   */
  async assignPositions(window: IdWindow, mode: Mode | null = null): Promise<number> {
    return this.manager.transaction(async (manager) => {
      await sql(manager, 'SELECT pg_advisory_xact_lock($1)', [POSITIONS_LOCK]);
      return assign(manager, window, mode);
    });
  }

  /** Like `assignPositions` for both modes; does nothing while another transaction is assigning them. */
  async assignPositionsUnlessBusy(window: IdWindow): Promise<number> {
    return this.manager.transaction(async (manager) => {
      const { rows } = await sql<{ locked: boolean }>(
        manager,
        'SELECT pg_try_advisory_xact_lock($1) AS locked',
        [POSITIONS_LOCK],
      );
      return rows[0]!.locked ? assign(manager, window, null) : 0;
    });
  }

  /**
   * Restarts positions above all that were ever assigned, provided that the clock moves forward and fewer than a
   * million per second were assigned. Events recorded since `restoredTo` get new positions, because readers may be past
   * their old ones (D54).
   */
  async restartPositions(tx: Tx, restoredTo: Date): Promise<void> {
    await sql(tx.manager, 'SELECT pg_advisory_xact_lock($1)', [POSITIONS_LOCK]);
    await sql(
      tx.manager,
      `SELECT setval('event_positions', greatest(
         nextval('event_positions') + 1000000000, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))`,
    );
    await sql(
      tx.manager,
      'UPDATE events SET position = NULL WHERE id >= $1 AND created_at > $2 AND position IS NOT NULL',
      [idFloor('evt', new Date(restoredTo.getTime() - CLOCKS_DIFFER_MS)), restoredTo],
    );
  }

  /** The greatest position of a mode, and whether committed events wait for positions. */
  async feedHead(window: IdWindow, mode: Mode): Promise<{ head: number; unpositioned: boolean }> {
    const bounds = [...boundsOf(window), mode];
    const { rows } = await sql<{ head: string; unpositioned: boolean }>(this.manager, FEED_HEAD, bounds);
    return { head: toSafeInteger(rows[0]!.head), unpositioned: rows[0]!.unpositioned };
  }

  /** Those of `awaited` for which there is an event after the position `after`, up to `upTo`. */
  async withNewEvents<A extends AwaitedEvents>(
    mode: Mode,
    awaited: readonly A[],
    after: number,
    upTo: number,
  ): Promise<readonly A[]> {
    const days = (await this.feedDays(mode, after)).map(({ day }) => day.getTime());
    if (days.length === 0) return [];
    const { rows } = await sql<{ partner_id: string; order_id: string | null }>(
      this.manager,
      `SELECT a.partner_id, a.order_id
       FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS given (partner_id, order_id)) AS a
       WHERE EXISTS (SELECT FROM events e WHERE e.partner_id = a.partner_id AND e.mode = $3 AND e.position > $4
                       AND e.position <= $5 AND e.id >= $6 AND e.id < $7
                       AND (a.order_id IS NULL OR substring(e.body FROM '"order_id":"([^"]+)"') = a.order_id))`,
      [
        awaited.map(({ partnerId }) => partnerId),
        awaited.map(({ orderId }) => orderId ?? null),
        mode,
        after,
        upTo,
        idFloor('evt', new Date(Math.min(...days))),
        idFloor('evt', dayOf(new Date(Math.max(...days)), 1)),
      ],
    );
    const found = new Set(rows.map((row) => `${row.partner_id} ${row.order_id}`));
    return awaited.filter(({ partnerId, orderId }) => found.has(`${partnerId} ${orderId ?? null}`));
  }

  /** Deletes the positions of dropped days. */
  async forgetDroppedDays(): Promise<void> {
    await sql(
      this.manager,
      `DELETE FROM event_feed_days f WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = f.partition_name)`,
    );
  }

  /** Whether events without a position are waiting, in one mode or in any. */
  async hasUnpositioned(window: IdWindow, mode: Mode | null = null): Promise<boolean> {
    const { rows } = await sql(
      this.manager,
      `SELECT 1 FROM events
       WHERE position IS NULL AND id >= $1 AND id < $2 AND ($3::text IS NULL OR mode = $3) LIMIT 1`,
      [...boundsOf(window), mode],
    );
    return rows.length > 0;
  }
}

/** First and last id of the window; `null` covers every event id. */
function boundsOf(window: IdWindow): [string, string] {
  return window === null ? ['evt_', 'evt`'] : [idFloor('evt', window.from), idFloor('evt', window.to)];
}

async function assign(manager: EntityManager, window: IdWindow, mode: Mode | null): Promise<number> {
  const { rows } = await sql<{ given: number }>(
    manager,
    `WITH given AS (
       UPDATE events e SET position = n.position
       FROM (SELECT id, mode, nextval('event_positions') AS position
             FROM (SELECT id, mode FROM events
                   WHERE position IS NULL AND id >= $2 AND id < $3 AND ($4::text IS NULL OR mode = $4)
                   ORDER BY created_at, id LIMIT $1) AS waiting) AS n
       WHERE e.id = n.id AND e.mode = n.mode AND e.id >= $2 AND e.id < $3 AND ($4::text IS NULL OR e.mode = $4)
       RETURNING e.tableoid, e.mode, e.position
     ), noted AS (
       INSERT INTO event_feed_days AS f (partition_name, mode, first_position, last_position)
       SELECT c.relname, g.mode, min(g.position), max(g.position)
       FROM given g JOIN pg_class c ON c.oid = g.tableoid GROUP BY 1, 2
       ON CONFLICT (partition_name) DO UPDATE
       SET first_position = least(f.first_position, excluded.first_position),
           last_position = greatest(f.last_position, excluded.last_position)
     )
     SELECT count(*)::int AS given FROM given`,
    [POSITIONS_BATCH, ...boundsOf(window), mode],
  );
  return rows[0]!.given;
}
