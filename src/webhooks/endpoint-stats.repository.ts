import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type Tx } from '../infra/database/index.js';
import { LATENCY_BOUNDS_MS } from './latency-classes.js';

/** Length of one statistics row in seconds. */
export const STATS_BUCKET_SECONDS = 900;

/** Counts stop here; this value means "at least". */
export const MAX_COUNTED = 10_000;

/** An endpoint's figures that are not in its row. */
export interface EndpointFigures {
  /** Deliveries that are pending or held; at most MAX_COUNTED. */
  readonly waiting: number;
  readonly lastSuccessAt: Date | null;
  /** Deliveries that failed since the last success. Enabling the endpoint with `failed: resend` sends them again. */
  readonly failedSinceLastSuccess: number;
}

/** Attempts in one bucket of the time window. */
export interface StatsBucket {
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
  readonly latencies: readonly number[];
}

/**
 * Adds recorded attempts to the statistics, in the statement that records them; `recorded` holds the attempts.
 * Statistics rows are locked last, in a fixed order (D40). Tests do not count, and an interruption counts only as the
 * last attempt (D30).
 */
export const ADD_TO_STATS = `
  INSERT INTO webhook_endpoint_stats AS s (endpoint_id, at, delivered, failed, given_up, given_up_since_success,
                                           latencies, last_success_at)
  SELECT g.endpoint_id, g.at, g.delivered, g.failed, g.given_up, g.given_up_since_success,
         ARRAY(SELECT cardinality(array_positions(g.classes, n))
               FROM generate_series(0, ${LATENCY_BOUNDS_MS.length}) AS n ORDER BY n), g.last_success_at
  FROM (
    SELECT r.endpoint_id, date_bin('${STATS_BUCKET_SECONDS} seconds', r.ended_at, 'epoch') AS at,
           count(*) FILTER (WHERE r.outcome = 'delivered')::int AS delivered,
           count(*) FILTER (WHERE r.outcome <> 'delivered')::int AS failed,
           count(*) FILTER (WHERE r.exhausted)::int AS given_up,
           count(*) FILTER (WHERE r.exhausted AND r.ended_at > coalesce(r.last_success_at, '-infinity'))::int
             AS given_up_since_success,
           max(r.ended_at) FILTER (WHERE r.outcome = 'delivered') AS last_success_at,
           array_agg(width_bucket(r.latency_ms, '{${LATENCY_BOUNDS_MS.join()}}'::float8[])) AS classes
    FROM (SELECT endpoint_id, ended_at, outcome, exhausted, latency_ms,
                 max(ended_at) FILTER (WHERE outcome = 'delivered') OVER (PARTITION BY endpoint_id) AS last_success_at
          FROM recorded WHERE kind <> 'test' AND (outcome <> 'interrupted' OR exhausted)) AS r
    GROUP BY 1, 2 ORDER BY 1, 2
  ) AS g
  ON CONFLICT (endpoint_id, at) DO UPDATE SET
    delivered = s.delivered + excluded.delivered,
    failed = s.failed + excluded.failed,
    given_up = s.given_up + excluded.given_up,
    given_up_since_success = excluded.given_up_since_success
      + CASE WHEN excluded.last_success_at IS NULL THEN s.given_up_since_success ELSE 0 END,
    latencies = ARRAY(SELECT a + b FROM unnest(s.latencies, excluded.latencies) WITH ORDINALITY AS u (a, b, n) ORDER BY n),
    last_success_at = greatest(s.last_success_at, excluded.last_success_at)`;

/** SQL that reads and purges `webhook_endpoint_stats`; `ADD_TO_STATS` writes it. */
@Injectable()
export class EndpointStatsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Figures for a page of endpoints by id, in one statement. */
  async figuresOf(endpointIds: readonly string[], tx?: Tx): Promise<Map<string, EndpointFigures>> {
    const { rows } = await sql<{ id: string; waiting: number; last_success_at: Date | null; failed: number }>(
      tx?.manager ?? this.manager,
      `SELECT w.id, o.waiting, s.last_success_at,
              coalesce(s.given_up_since_success, 0)
                + (SELECT coalesce(sum(later.given_up), 0)::int FROM webhook_endpoint_stats later
                   WHERE later.endpoint_id = w.id AND later.at > coalesce(s.at, '-infinity')) AS failed
       FROM webhook_endpoints w
       CROSS JOIN LATERAL (
         SELECT count(*)::int AS waiting FROM (
           SELECT 1 FROM webhook_deliveries d
           WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at >= coalesce(w.discard_before, '-infinity')
           LIMIT ${MAX_COUNTED}) AS found
       ) AS o
       LEFT JOIN LATERAL (
         SELECT r.at, r.last_success_at, r.given_up_since_success FROM webhook_endpoint_stats r
         WHERE r.endpoint_id = w.id AND r.last_success_at IS NOT NULL ORDER BY r.at DESC LIMIT 1
       ) AS s ON true
       WHERE w.id = ANY ($1::text[])`,
      [endpointIds],
    );
    const toFigures = (row: (typeof rows)[number]): EndpointFigures => ({
      waiting: row.waiting,
      lastSuccessAt: row.last_success_at,
      failedSinceLastSuccess: row.failed,
    });
    return new Map(rows.map((row) => [row.id, toFigures(row)]));
  }

  /** Attempts of the last `windowSeconds` in steps of `stepSeconds`, oldest first, including empty steps. */
  async bucketsOf(
    endpointId: string,
    windowSeconds: number,
    stepSeconds: number,
  ): Promise<readonly StatsBucket[]> {
    const { rows } = await sql<{ at: Date; delivered: number; failed: number; latencies: number[] | null }>(
      this.manager,
      `WITH bound AS (
         SELECT date_bin($3::int * interval '1 second', statement_timestamp(), 'epoch') AS newest,
                $3::int * interval '1 second' AS step, $2::int * interval '1 second' AS width
       ), rolled AS (
         SELECT date_bin(b.step, s.at, 'epoch') AS at, s.delivered, s.failed, s.latencies
         FROM webhook_endpoint_stats s CROSS JOIN bound b
         WHERE s.endpoint_id = $1 AND s.at >= b.newest + b.step - b.width
       )
       SELECT step.at, coalesce(sum(r.delivered), 0)::int AS delivered, coalesce(sum(r.failed), 0)::int AS failed,
              (SELECT array_agg(c.total ORDER BY c.n)
               FROM (SELECT u.n, sum(u.class)::int AS total
                     FROM rolled a CROSS JOIN unnest(a.latencies) WITH ORDINALITY AS u (class, n)
                     WHERE a.at = step.at GROUP BY u.n) AS c) AS latencies
       FROM bound b
       CROSS JOIN generate_series(b.newest + b.step - b.width, b.newest, b.step) AS step (at)
       LEFT JOIN rolled r ON r.at = step.at
       GROUP BY step.at ORDER BY step.at`,
      [endpointId, windowSeconds, stepSeconds],
    );
    return rows.map((row) => ({ ...row, latencies: row.latencies ?? [] }));
  }

  /**
   * Deletes up to `limit` old rows and returns their number. An endpoint's last success stays as long as the endpoint.
   */
  async purge(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM webhook_endpoint_stats WHERE ctid = ANY (ARRAY(
         SELECT s.ctid FROM webhook_endpoint_stats s
         WHERE s.at < now() - $1::int * interval '1 day' AND NOT (
           s.last_success_at IS NOT NULL
           AND EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.id = s.endpoint_id)
           AND NOT EXISTS (SELECT 1 FROM webhook_endpoint_stats later
                           WHERE later.endpoint_id = s.endpoint_id AND later.at > s.at
                             AND later.last_success_at IS NOT NULL))
         ORDER BY s.at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }
}
