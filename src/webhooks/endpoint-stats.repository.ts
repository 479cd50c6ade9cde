import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { TenantScope } from '../common/tenant-scope.js';
import { sql, type Tx } from '../infra/database/index.js';
import { type Cause, causeOf } from './failure-causes.js';
import { LATENCY_BOUNDS_MS } from './latency-classes.js';

/** Length of one statistics row in seconds. */
export const STATS_BUCKET_SECONDS = 900;

/** Counts stop here; this value means "at least". */
export const MAX_COUNTED = 10_000;

/** The first failed attempt after an endpoint's last success. */
export interface FirstFailure {
  readonly since: Date;
  readonly cause: Cause;
}

/** An endpoint's figures that are not in its row. */
export interface EndpointFigures {
  /** Deliveries that are pending or held; at most MAX_COUNTED. */
  readonly waiting: number;
  readonly lastSuccessAt: Date | null;
  /** Deliveries that failed since the last success. Enabling the endpoint with `failed: resend` sends them again. */
  readonly failedSinceLastSuccess: number;
  /** Null if the last attempt that counts succeeded, or if there is none. */
  readonly failing: FirstFailure | null;
  /** Attempts and deliveries that ended in the last 24 hours; `givenUp` deliveries have no attempt left. */
  readonly lastDay: { readonly delivered: number; readonly failedAttempts: number; readonly givenUp: number };
}

/** Deliveries that ended in one step; `failed` ones had no attempt left. */
export interface EndedDeliveries {
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
}

/** Attempts in one bucket of the time window. */
export interface StatsBucket {
  readonly at: Date;
  readonly delivered: number;
  readonly failed: number;
  readonly latencies: readonly number[];
}

/**
 * The row has a first failure, or the attempts to add have one, after the last success of both. Attempts may be added
 * in another order than they ended.
 */
const failsSince = (row: 's' | 'excluded'): string =>
  `${row}.failing_since > coalesce(greatest(s.last_success_at, excluded.last_success_at), '-infinity')`;

/** The value of the row whose failure counts; null if none does. */
const ofFirstFailure = (column: string): string =>
  `CASE WHEN ${failsSince('s')} THEN s.${column} WHEN ${failsSince('excluded')} THEN excluded.${column} END`;

/**
 * Adds recorded attempts to the statistics, in the statement that records them; `recorded` holds the attempts.
 * Statistics rows are locked last, in a fixed order (D40). Tests do not count, and an interruption counts only as the
 * last attempt (D30).
 */
export const ADD_TO_STATS = `
  INSERT INTO webhook_endpoint_stats AS s (endpoint_id, at, delivered, failed, given_up, given_up_since_success,
                                           failing_since, failing_status_code, failing_error, latencies, last_success_at)
  SELECT g.endpoint_id, g.at, g.delivered, g.failed, g.given_up, g.given_up_since_success,
         g.failing_since, g.failing_status_code, g.failing_error,
         ARRAY(SELECT cardinality(array_positions(g.classes, n))
               FROM generate_series(0, ${LATENCY_BOUNDS_MS.length}) AS n ORDER BY n), g.last_success_at
  FROM (
    SELECT r.endpoint_id, date_bin('${STATS_BUCKET_SECONDS} seconds', r.ended_at, 'epoch') AS at,
           count(*) FILTER (WHERE r.outcome = 'delivered')::int AS delivered,
           count(*) FILTER (WHERE r.outcome <> 'delivered')::int AS failed,
           count(*) FILTER (WHERE r.exhausted)::int AS given_up,
           count(*) FILTER (WHERE r.exhausted AND r.ended_at > coalesce(r.last_success_at, '-infinity'))::int
             AS given_up_since_success,
           min(r.ended_at) FILTER (WHERE r.is_failing) AS failing_since,
           (array_agg(r.status_code ORDER BY r.ended_at) FILTER (WHERE r.is_failing))[1] AS failing_status_code,
           (array_agg(r.error ORDER BY r.ended_at) FILTER (WHERE r.is_failing))[1] AS failing_error,
           max(r.ended_at) FILTER (WHERE r.outcome = 'delivered') AS last_success_at,
           array_agg(width_bucket(r.latency_ms, '{${LATENCY_BOUNDS_MS.join()}}'::float8[])) AS classes
    FROM (SELECT c.*, c.outcome = 'failed' AND c.ended_at > coalesce(c.last_success_at, '-infinity') AS is_failing
          FROM (SELECT endpoint_id, ended_at, outcome, exhausted, latency_ms, status_code, error,
                       max(ended_at) FILTER (WHERE outcome = 'delivered') OVER (PARTITION BY endpoint_id)
                         AS last_success_at
                FROM recorded WHERE kind <> 'test' AND (outcome <> 'interrupted' OR exhausted)) AS c) AS r
    GROUP BY 1, 2 ORDER BY 1, 2
  ) AS g
  ON CONFLICT (endpoint_id, at) DO UPDATE SET
    delivered = s.delivered + excluded.delivered,
    failed = s.failed + excluded.failed,
    given_up = s.given_up + excluded.given_up,
    given_up_since_success = excluded.given_up_since_success
      + CASE WHEN excluded.last_success_at IS NULL THEN s.given_up_since_success ELSE 0 END,
    failing_since = ${ofFirstFailure('failing_since')},
    failing_status_code = ${ofFirstFailure('failing_status_code')},
    failing_error = ${ofFirstFailure('failing_error')},
    latencies = ARRAY(SELECT a + b FROM unnest(s.latencies, excluded.latencies) WITH ORDINALITY AS u (a, b, n) ORDER BY n),
    last_success_at = greatest(s.last_success_at, excluded.last_success_at)`;

interface FiguresRow {
  id: string;
  waiting: number;
  last_success_at: Date | null;
  failed: number;
  failing_since: Date | null;
  failing_status_code: number | null;
  failing_error: string | null;
  delivered: number;
  failed_attempts: number;
  given_up: number;
}

function toFigures(row: FiguresRow): EndpointFigures {
  const { failing_since: since, failing_status_code: statusCode, failing_error: error } = row;
  return {
    waiting: row.waiting,
    lastSuccessAt: row.last_success_at,
    failedSinceLastSuccess: row.failed,
    failing: since && { since, cause: causeOf({ outcome: 'failed', statusCode, error }) },
    lastDay: { delivered: row.delivered, failedAttempts: row.failed_attempts, givenUp: row.given_up },
  };
}

/** SQL that reads and purges `webhook_endpoint_stats`; `ADD_TO_STATS` writes it. */
@Injectable()
export class EndpointStatsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Figures for a page of endpoints by id, in one statement. */
  async figuresOf(endpointIds: readonly string[], tx?: Tx): Promise<Map<string, EndpointFigures>> {
    const { rows } = await sql<FiguresRow>(
      tx?.manager ?? this.manager,
      `SELECT w.id, o.waiting, s.last_success_at,
              coalesce(s.given_up_since_success, 0)
                + (SELECT coalesce(sum(later.given_up), 0)::int FROM webhook_endpoint_stats later
                   WHERE later.endpoint_id = w.id AND later.at > coalesce(s.at, '-infinity')) AS failed,
              f.failing_since, f.failing_status_code, f.failing_error, day.delivered, day.failed_attempts, day.given_up
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
       LEFT JOIN LATERAL (
         SELECT r.failing_since, r.failing_status_code, r.failing_error FROM webhook_endpoint_stats r
         WHERE r.endpoint_id = w.id AND r.at >= coalesce(s.at, '-infinity') AND r.failing_since IS NOT NULL
         ORDER BY r.at LIMIT 1
       ) AS f ON true
       CROSS JOIN LATERAL (
         SELECT coalesce(sum(r.delivered), 0)::int AS delivered, coalesce(sum(r.failed), 0)::int AS failed_attempts,
                coalesce(sum(r.given_up), 0)::int AS given_up
         FROM webhook_endpoint_stats r
         -- the same buckets as in the statistics of 24 hours
         WHERE r.endpoint_id = w.id AND r.at > statement_timestamp() - interval '24 hours'
       ) AS day
       WHERE w.id = ANY ($1::text[])`,
      [endpointIds],
    );
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
   * Deliveries of all of a partner's endpoints that ended since `from`, in steps of `stepSeconds`. Steps without any are
   * missing.
   */
  async listDeliveriesOf(
    { partnerId, mode }: TenantScope,
    from: Date,
    stepSeconds: number,
  ): Promise<readonly EndedDeliveries[]> {
    const { rows } = await sql<EndedDeliveries>(
      this.manager,
      `SELECT date_bin($4::int * interval '1 second', s.at, 'epoch') AS at, sum(s.delivered)::int AS delivered,
              sum(s.given_up)::int AS failed
       FROM webhook_endpoints w JOIN webhook_endpoint_stats s ON s.endpoint_id = w.id AND s.at >= $3
       WHERE w.partner_id = $1 AND w.mode = $2
       GROUP BY 1`,
      [partnerId, mode, from, stepSeconds],
    );
    return rows;
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
