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
    given: readonly FinishedAttempt[],
    apart: AffectedEndpoints = NONE,
  ): Promise<readonly RecordedAttempt[]> {
    const attempts = given.toSorted(byIdAndFence);
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

/** As collation C has them. Of two attempts of one delivery the newer is last and the one that counts: the other lost its lease. */
function byIdAndFence(a: FinishedAttempt, b: FinishedAttempt): number {
  if (a.deliveryId === b.deliveryId) return BigInt(a.fence) < BigInt(b.fence) ? -1 : 1;
  return a.deliveryId < b.deliveryId ? -1 : 1;
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

/**
 * The place of delivery `d` among the attempts, which are in the order of their ids: the last of those that are not above
 * it. No join: PostgreSQL plans for a queue that was empty when it counted last, and would read all that is open, or all
 * attempts, for each of them again.
 */
const NTH = 'width_bucket(d.id, $1::text[])';
const MS = "interval '1 millisecond'";

/** The attempt at a place, as `a`. */
const attemptAt = (nth: string): string => `
    CROSS JOIN LATERAL (
      SELECT ($3::text[])[${nth}] AS outcome, ($4::int[])[${nth}] AS status_code, ($5::float8[])[${nth}] AS latency_ms,
             ${NOW} - ($6::float8[])[${nth}] * ${MS} AS ended_at, ($7::text[])[${nth}] AS error,
             ($8::text[])[${nth}] AS phases, ($9::text[])[${nth}] AS response_body,
             ($13::text[])[${nth}] AS request_headers, ($14::text[])[${nth}] AS response_headers,
             ($15::float8[])[${nth}] AS ran_ms
    ) a`;

/** What attempt `a` makes of the counts of delivery `d`. */
const COUNTS = `
    CROSS JOIN LATERAL (
      SELECT a.outcome <> 'interrupted' OR d.interruptions >= ${UNCOUNTED_INTERRUPTIONS} AS counts
    ) c
    CROSS JOIN LATERAL (
      SELECT d.counted_attempts + c.counts::int AS counted,
             CASE WHEN c.counts THEN 0 ELSE d.interruptions + 1 END AS interruptions
    ) n`;

const RECORD = prepared(`
  WITH next AS (
    SELECT d.id, x.exhausted, a.outcome = 'delivered' OR x.exhausted OR NOT o.owed AS ends
    FROM webhook_deliveries d
    JOIN webhook_endpoints w ON w.id = d.endpoint_id
    CROSS JOIN LATERAL (SELECT ${NTH} AS nth) p${attemptAt('p.nth')}${COUNTS}
    -- given up by one row of the endpoint, and not written down yet (D32)
    CROSS JOIN LATERAL (SELECT d.status = 'pending' AND NOT coalesce(d.created_at < w.discard_before, false) AS owed) o
    CROSS JOIN LATERAL (
      SELECT c.counts AND a.outcome <> 'delivered' AND o.owed
             AND (d.kind = 'test' OR d.counted_attempts + 1 >= $12::int) AS exhausted
    ) x
    WHERE d.id = ANY ($1::text[]) AND d.${IS_OPEN}
      -- the id again: were the attempts in another order, one would be recorded as another's
      AND d.id = ($1::text[])[p.nth] AND d.fence = ($2::bigint[])[p.nth] AND d.lease_owner = $10
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
        (counted_attempts, interruptions, next_attempt_at, last_outcome, last_status_code, last_latency_ms, last_error,
         last_started_at) = (
          SELECT n.counted, n.interruptions,
                 CASE WHEN c.counts THEN a.ended_at + ($11::int[])[n.counted] * ${MS} ELSE d.next_attempt_at END,
                 a.outcome, a.status_code, round(a.latency_ms)::int, a.error, a.ended_at - a.ran_ms * ${MS}
          FROM (SELECT ${NTH} AS nth) p${attemptAt('p.nth')}${COUNTS}
        ),
        lease_owner = NULL, claimed_at = NULL, lease_until = NULL
    WHERE d.id = ANY (ARRAY(SELECT id FROM next WHERE NOT ends)) AND d.status = 'pending'
    RETURNING d.id, d.endpoint_id, d.partner_id, d.kind, d.status, d.attempt_count AS number, false AS exhausted,
      ${NTH} AS nth
  ), deleted AS (
    DELETE FROM webhook_deliveries d
    WHERE d.id = ANY (ARRAY(SELECT id FROM next WHERE ends)) AND d.${IS_OPEN}
    RETURNING d.id, d.endpoint_id, d.partner_id, d.kind, d.mode, d.event_id, d.event_type, d.test_body, d.replay_id,
      d.fence, d.created_at, d.attempt_count, d.counted_attempts, d.interruptions,
      d.id = ANY (ARRAY(SELECT id FROM next WHERE exhausted)) AS exhausted, ${NTH} AS nth
  ), ended AS (
    SELECT d.id, d.endpoint_id, d.partner_id, d.kind, d.mode, d.event_id, d.event_type, d.test_body, d.replay_id, d.fence,
      d.created_at, d.exhausted, d.attempt_count + 1 AS number, n.counted, n.interruptions, a.*,
      CASE WHEN a.outcome = 'delivered' THEN 'delivered' WHEN d.exhausted THEN 'failed' ELSE 'discarded' END AS status
    FROM deleted d${attemptAt('d.nth')}${COUNTS}
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
    SELECT ${RECORDED} FROM going_on${attemptAt('nth')} UNION ALL SELECT ${RECORDED} FROM ended
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
