import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { TenantScope } from '../common/tenant-scope.js';
import { sql, toSafeInteger } from '../infra/database/index.js';

/** A period and the one before it, as rows of equal length by the database's clock. */
export interface Period {
  /** Beginning of the previous period. */
  readonly from: Date;
  /** Number of rows of each of the two. */
  readonly buckets: number;
  readonly stepSeconds: number;
}

/** Orders accepted in one step of a period, in one currency. */
export interface ActivityBucket {
  readonly at: Date;
  readonly currency: string;
  readonly orders: number;
  readonly failed: number;
  /** Minor units. */
  readonly cost: number;
}

const BUCKET = `interval '15 minutes'`;
/** A transaction that accepts an order commits within this time, because each of its statements has a timeout. */
const LATE_COMMITS = `interval '5 minutes'`;
/** Limits what one statement counts after a long pause. */
const MAX_STEP = `interval '1 hour'`;

/**
 * Counts whole quarter-hours anew and overwrites their rows, so that a repeated count changes nothing: those since the
 * last count, and earlier ones with orders that had no result. A purge of orders never changes a row without open ones.
 * $1 minimum time since the last count, in milliseconds. One process counts at a time.
 */
const COUNT = `
  WITH turn AS MATERIALIZED (
    SELECT date_bin(${BUCKET}, counted_to - ${LATE_COMMITS}, 'epoch') AS from_at,
           least(statement_timestamp(), counted_to + ${MAX_STEP}) AS to_at
    FROM partner_activity_progress
    WHERE counted_to <= statement_timestamp() - $1::int * interval '1 millisecond'
    FOR UPDATE SKIP LOCKED
  ), moved AS (
    UPDATE partner_activity_progress SET counted_to = turn.to_at FROM turn
  ), ranges AS MATERIALIZED (
    SELECT p.id AS partner_id, m.mode, turn.from_at, turn.to_at
    FROM turn CROSS JOIN partners p CROSS JOIN (VALUES ('sandbox'), ('live')) AS m (mode)
    UNION ALL
    SELECT DISTINCT a.partner_id, a.mode, a.at, a.at + ${BUCKET}
    FROM turn JOIN partner_activity a ON a.open > 0 AND a.at < turn.from_at
  ), counted AS (
    INSERT INTO partner_activity AS a (partner_id, mode, at, currency, orders, failed, cost, open)
    SELECT r.partner_id, r.mode, c.at, c.currency, c.orders, c.failed, c.cost, c.open
    FROM ranges r
    -- aggregated inside, so that every plan looks up the ranges in the partner's list
    CROSS JOIN LATERAL (
      SELECT date_bin(${BUCKET}, b.created_at, 'epoch') AS at, b.currency, sum(b.orders)::int AS orders,
             sum(b.failed)::int AS failed, sum(b.cost)::bigint AS cost, sum(b.open)::int AS open
      FROM (
        SELECT o.created_at, o.currency, 1 AS orders, (o.status = 'failed')::int AS failed,
               o.unit_price_amount * o.quantity_issued AS cost, (o.status IN ('pending', 'processing'))::int AS open
        FROM orders o
        WHERE o.partner_id = r.partner_id AND o.mode = r.mode AND o.created_at >= r.from_at AND o.created_at < r.to_at
        UNION ALL
        SELECT t.created_at, t.currency, 0, 0, CASE t.status WHEN 'completed' THEN t.price_amount ELSE 0 END,
               (t.status IN ('pending', 'processing'))::int
        FROM topups t
        WHERE t.partner_id = r.partner_id AND t.mode = r.mode AND t.created_at >= r.from_at AND t.created_at < r.to_at
      ) AS b
      GROUP BY 1, 2
    ) AS c
    ORDER BY 1, 2, 3, 4
    ON CONFLICT (partner_id, mode, at, currency) DO UPDATE
      SET orders = excluded.orders, failed = excluded.failed, cost = excluded.cost, open = excluded.open
      WHERE (a.orders, a.failed, a.cost, a.open)
        IS DISTINCT FROM (excluded.orders, excluded.failed, excluded.cost, excluded.open)
  )
  SELECT to_at < statement_timestamp() AS behind FROM turn`;

/** SQL of `partner_activity`. */
@Injectable()
export class ActivityRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Counts what is new; true if it has to be called again for the rest. */
  async count(unlessWithinMs: number): Promise<boolean> {
    const { rows } = await sql<{ behind: boolean }>(this.manager, COUNT, [unlessWithinMs]);
    return rows[0]?.behind ?? false;
  }

  /** A period that ends with the current step, and the one before. Steps begin in UTC. */
  async periodOf(buckets: number, stepSeconds: number): Promise<Period> {
    const { rows } = await sql<{ from_at: Date }>(
      this.manager,
      `SELECT date_bin(s.step, statement_timestamp(), 'epoch') - ($1::int * 2 - 1) * s.step AS from_at
       FROM (SELECT $2::int * interval '1 second' AS step) AS s`,
      [buckets, stepSeconds],
    );
    return { from: rows[0]!.from_at, buckets, stepSeconds };
  }

  /** The steps of both periods with orders or top-ups, one row for each currency. */
  async listSince(
    { partnerId, mode }: TenantScope,
    { from, stepSeconds }: Period,
  ): Promise<readonly ActivityBucket[]> {
    const { rows } = await sql<{ at: Date; currency: string; orders: number; failed: number; cost: string }>(
      this.manager,
      `SELECT date_bin($4::int * interval '1 second', at, 'epoch') AS at, currency, sum(orders)::int AS orders,
              sum(failed)::int AS failed, sum(cost)::bigint AS cost
       FROM partner_activity WHERE partner_id = $1 AND mode = $2 AND at >= $3
       GROUP BY 1, 2`,
      [partnerId, mode, from, stepSeconds],
    );
    return rows.map((row) => ({ ...row, cost: toSafeInteger(row.cost) }));
  }

  /** Deletes up to `limit` old rows, and returns their number. */
  async purge(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM partner_activity WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM partner_activity WHERE at < now() - $1::int * interval '1 day'
         ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }
}
