import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig, type WebhookConfig } from '../../config/index.js';
import type { EntityManager } from 'typeorm';
import { prepared, sql, type SqlParameter } from '../../infra/database/index.js';
import type { AttemptOutcome, DeliveryKind, StoredDeliveryStatus } from '../delivery.js';
import { type EndedAttempt, maxAttempts, UNCOUNTED_INTERRUPTIONS } from '../delivery-rules.js';
import { ADD_TO_STATS } from '../endpoint-stats.repository.js';
import { IS_OPEN } from '../webhook-delivery.entity.js';
import type { FinishedAttempt } from './attempt-result.js';
import type { AffectedEndpoints } from './endpoint-transitions.repository.js';

/** A delivery after one of its attempts was recorded. */
export interface RecordedAttempt extends EndedAttempt {
  readonly deliveryId: string;
  readonly status: StoredDeliveryStatus;
  /** Place of the attempt in the log, from 1. */
  readonly number: number;
}

const NOW = 'statement_timestamp()';
const NONE: AffectedEndpoints = { exhausting: [], succeeding: [], failing: [], timedOut: [] };

/** SQL that records attempts: `afterAttempt` of delivery-rules.ts, with every guard in the statement (D30, D40). */
@Injectable()
export class OutcomesRepository {
  private readonly settings: WebhookConfig;

  constructor(@Inject(APP_CONFIG) config: AppConfig) {
    this.settings = config.webhooks;
  }

  /**
   * Writes attempt rows and next states, for those attempts that still hold their lease. A delivery that was
   * discarded meanwhile gets its attempt row, and becomes `delivered` when that is what happened. What ends leaves what
   * is open for its day: deleted and inserted, so that a renewal that waits for the row passes over it.
   * @param apart endpoints that attempts may change; those that they would change, as `EndpointTransitionsRepository.lock`
   *   finds them, are left out with all their attempts. What changes none is a transaction by itself.
   */
  async record(
    manager: EntityManager,
    owner: string,
    attempts: readonly FinishedAttempt[],
    apart: AffectedEndpoints = NONE,
  ): Promise<readonly RecordedAttempt[]> {
    const { rows } = await sql<RecordedRow>(manager, RECORD, [
      ...columnsOf(attempts),
      owner,
      this.settings.retryDelaysMs,
      maxAttempts(this.settings),
      attempts.map(({ requestHeaders }) => jsonOrNull(requestHeaders)),
      attempts.map(({ responseHeaders }) => jsonOrNull(responseHeaders)),
      // The latency ends with the status line; the attempt began before that, and ended after its body.
      attempts.map(({ phases, latencyMs }) => phases?.totalMs ?? latencyMs),
      ...[apart.exhausting, apart.succeeding, apart.failing, apart.timedOut],
    ]);
    return rows.map(({ delivery_id, endpoint_id, ended_at_ms, ...row }) => ({
      ...row,
      deliveryId: delivery_id,
      endpointId: endpoint_id,
      endedAtMs: ended_at_ms,
    }));
  }
}

interface RecordedRow {
  delivery_id: string;
  endpoint_id: string;
  kind: DeliveryKind;
  status: StoredDeliveryStatus;
  outcome: AttemptOutcome;
  number: number;
  exhausted: boolean;
  ended_at_ms: number;
}

const RECORDED = `id, endpoint_id, partner_id, kind, status, number, outcome, exhausted, ended_at, ran_ms, latency_ms,
  status_code, error, phases, response_body, request_headers, response_headers`;

/** A condition of its own, as a join may read the table from end to end where it was empty when PostgreSQL last counted it. */
const OF_THESE = 'id = ANY ($1::text[])';

const RECORD = prepared(`
  WITH attempt AS (
    SELECT a.*, ${NOW} - a.ended_ago_ms * interval '1 millisecond' AS ended_at
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[], $5::float8[], $6::float8[], $7::text[], $8::text[],
                $9::text[], $13::text[], $14::text[], $15::float8[])
      AS a (id, fence, outcome, status_code, latency_ms, ended_ago_ms, error, phases, response_body, request_headers,
            response_headers, ran_ms)
  ), next AS (
    SELECT d.id, a.outcome, a.status_code, a.latency_ms, a.ran_ms, a.ended_at, a.error, a.phases, a.response_body,
           a.request_headers, a.response_headers, c.counts, d.counted_attempts + c.counts::int AS counted,
           CASE WHEN c.counts THEN 0 ELSE d.interruptions + 1 END AS interruptions, x.exhausted,
           a.outcome = 'delivered' OR x.exhausted OR NOT o.owed AS ends
    FROM attempt a
    JOIN webhook_deliveries d ON d.id = a.id AND d.fence = a.fence AND d.lease_owner = $10
    JOIN webhook_endpoints w ON w.id = d.endpoint_id
    -- given up by one row of the endpoint, and not written down yet (D32)
    CROSS JOIN LATERAL (SELECT d.status = 'pending' AND NOT coalesce(d.created_at < w.discard_before, false) AS owed) o
    CROSS JOIN LATERAL (
      SELECT a.outcome <> 'interrupted' OR d.interruptions >= ${UNCOUNTED_INTERRUPTIONS} AS counts
    ) c
    CROSS JOIN LATERAL (
      SELECT c.counts AND a.outcome <> 'delivered' AND o.owed
             AND (d.kind = 'test' OR d.counted_attempts + 1 >= $12::int) AS exhausted
    ) x
    WHERE d.${IS_OPEN} AND d.${OF_THESE}
      -- by the same condition these endpoints are locked, and changed with their attempts
      AND (w.id = ANY ($16::text[])
           OR (w.id = ANY ($17::text[]) AND (w.consecutive_blocks > 0 OR w.ramp_window IS NOT NULL))
           OR (w.id = ANY ($18::text[]) AND w.ramp_window > 1)
           OR (w.id = ANY ($19::text[]) AND w.ramp_window IS DISTINCT FROM 1)) IS NOT TRUE
    ORDER BY d.id
    FOR UPDATE OF d
  ), going_on AS (
    UPDATE webhook_deliveries d
    SET attempt_count = d.attempt_count + 1,
        counted_attempts = n.counted,
        interruptions = n.interruptions,
        next_attempt_at = CASE WHEN n.counts THEN n.ended_at + ($11::int[])[n.counted] * interval '1 millisecond'
                               ELSE d.next_attempt_at END,
        last_outcome = n.outcome, last_status_code = n.status_code, last_latency_ms = round(n.latency_ms)::int,
        last_error = n.error, last_started_at = n.ended_at - n.ran_ms * interval '1 millisecond',
        lease_owner = NULL, claimed_at = NULL, lease_until = NULL
    FROM next n
    WHERE d.id = n.id AND d.${OF_THESE} AND d.status = 'pending' AND NOT n.ends
    -- everything of the attempt too: joining it again would cost the square of the batch
    RETURNING d.endpoint_id, d.partner_id, d.kind, d.status, d.attempt_count AS number, n.*
  ), ended AS (
    DELETE FROM webhook_deliveries d USING next n
    WHERE d.id = n.id AND d.${OF_THESE} AND d.${IS_OPEN} AND n.ends
    RETURNING d.endpoint_id, d.partner_id, d.kind,
      CASE WHEN n.outcome = 'delivered' THEN 'delivered' WHEN n.exhausted THEN 'failed' ELSE 'discarded' END AS status,
      d.attempt_count + 1 AS number, d.mode, d.event_id, d.event_type, d.test_body, d.replay_id, d.fence, d.created_at, n.*
  ), stored AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, test_body,
                                    replay_id, attempt_count, counted_attempts, interruptions, fence, created_at,
                                    delivered_at, failed_at, ended_at, last_outcome, last_status_code, last_latency_ms,
                                    last_error, last_started_at)
    SELECT id, endpoint_id, partner_id, mode, event_id, event_type, kind, status, test_body, replay_id, number, counted,
           interruptions, fence, created_at, CASE WHEN status = 'delivered' THEN ended_at END,
           CASE WHEN status = 'failed' THEN ended_at END, ${NOW}, outcome, status_code, round(latency_ms)::int, error,
           ended_at - ran_ms * interval '1 millisecond'
    FROM ended
  ), recorded AS (
    SELECT ${RECORDED} FROM going_on UNION ALL SELECT ${RECORDED} FROM ended
  ), logged AS (
    INSERT INTO webhook_attempts (delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code, latency_ms, error,
                                  phases, response_body, request_headers, response_headers, recorded_at)
    SELECT id, endpoint_id, partner_id, number, ended_at - ran_ms * interval '1 millisecond', outcome, status_code,
           round(latency_ms)::int, error, phases::jsonb, response_body, request_headers::jsonb, response_headers::jsonb,
           ${NOW}
    FROM recorded
  ), counted AS (${ADD_TO_STATS}
  )
  SELECT id AS delivery_id, endpoint_id, kind, status, outcome, number, exhausted,
         extract(epoch FROM ended_at)::float8 * 1000 AS ended_at_ms FROM recorded`);

function columnsOf(attempts: readonly FinishedAttempt[]): SqlParameter[] {
  const now = performance.now();
  return [
    attempts.map((attempt) => attempt.deliveryId),
    attempts.map((attempt) => attempt.fence),
    attempts.map((attempt) => attempt.outcome),
    attempts.map((attempt) => attempt.statusCode),
    attempts.map((attempt) => attempt.latencyMs),
    attempts.map((attempt) => now - attempt.endedAt),
    attempts.map((attempt) => attempt.error),
    attempts.map((attempt) => phasesJson(attempt)),
    attempts.map((attempt) => attempt.responseBody),
  ];
}

function phasesJson({ phases }: FinishedAttempt): string | null {
  if (!phases) return null;
  return JSON.stringify({
    dns_ms: rounded(phases.dnsMs),
    connect_ms: rounded(phases.connectMs),
    tls_ms: rounded(phases.tlsMs),
    first_byte_ms: rounded(phases.firstByteMs),
    total_ms: rounded(phases.totalMs),
  });
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}

function jsonOrNull(headers: Readonly<Record<string, string>> | null): string | null {
  return headers === null ? null : JSON.stringify(headers);
}
