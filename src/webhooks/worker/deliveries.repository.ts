import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../../common/mode.js';
import { readBodiesInTheirDays } from '../../events/index.js';
import { COMMIT_WITHOUT_DISK, NOW, prepared, sql, type SqlParameter } from '../../infra/database/index.js';
import type { AttemptPhase, DeliveryEventType, DeliveryKind, StoredDeliveryStatus } from '../delivery.js';
import type { DeliveryAfterAttempt, DeliveryState } from '../delivery-rules.js';
import { ADD_TO_STATS } from '../endpoint-stats.repository.js';
import { IS_KEPT, IS_OPEN, STORE_GIVEN_UP } from '../webhook-delivery.entity.js';
import {
  TAKES_ATTEMPTS,
  TARGET_COLUMNS,
  type TargetRow,
  toTarget,
  type WebhookTarget,
} from '../webhook-endpoint.entity.js';
import type { FinishedAttempt } from './attempt-result.js';

/** A delivery started by this process, with everything one attempt needs. */
export interface StartedDelivery extends DeliveryState, WebhookTarget {
  readonly id: string;
  readonly endpointId: string;
  readonly mode: Mode;
  readonly eventType: DeliveryEventType;
  /** Fence of the endpoint's lease under which it was started. */
  readonly fence: string;
  /** The stored bytes (D28); null when the event is past its retention. */
  readonly body: string | null;
  /** Set when an earlier owner had started it: that attempt was interrupted, and is logged first (D30). */
  readonly interruptedAgoMs: number | null;
}

/** A claim of one endpoint's deliveries by its owner. */
export interface EndpointClaim {
  readonly endpointId: string;
  readonly fence: string;
  /** Attempts that may begin. */
  readonly free: number;
}

export interface ClaimedEndpoint {
  readonly deliveries: readonly StartedDelivery[];
  readonly consecutiveBlocks: number;
  readonly slowStartSince: string | null;
  /**
   * Milliseconds until the next delivery is due or the block ends; null when nothing is due, or nothing may be sent.
   */
  readonly nextDueInMs: number | null;
}

/** A finished attempt with the states that the rules computed. */
export interface AttemptOutcomeRow {
  readonly attempt: FinishedAttempt;
  readonly after: DeliveryAfterAttempt;
  /** The state if the delivery was discarded in the meantime. */
  readonly afterGivenUp: DeliveryAfterAttempt;
}

export interface RecordedAttempt {
  readonly deliveryId: string;
  readonly status: StoredDeliveryStatus;
  /** Place of the attempt in the log, from 1. */
  readonly number: number;
  readonly exhausted: boolean;
}

const MS = "interval '1 millisecond'";

interface ClaimRow extends TargetRow {
  endpoint_id: string;
  mode: Mode;
  consecutive_blocks: number;
  slow_start_since: string | null;
  due_ms: number | null;
  id: string | null;
  kind: DeliveryKind;
  event_id: string | null;
  event_type: DeliveryEventType;
  test_body: string | null;
  counted_attempts: number;
  interruptions: number;
  interrupted_ago_ms: number | null;
}

/**
 * Starts the oldest due deliveries of endpoints that this process owns: $1 endpoints, $2 fences, $3 free slots, $4 the
 * process. Returns a row per delivery, or one for an endpoint without any. Deliveries that this owner started are in
 * flight; those that an earlier owner started were interrupted, and are started again.
 */
const CLAIM = prepared(`
  WITH mine AS MATERIALIZED (
    SELECT w.id AS endpoint_id, m.fence, m.free, w.mode, ${TARGET_COLUMNS}, w.consecutive_blocks, w.slow_start_since::text, coalesce(w.discard_before, '-infinity') AS kept_from,
           CASE WHEN w.blocked_until > ${NOW} THEN extract(epoch FROM w.blocked_until - ${NOW}) * 1000 END AS blocked_ms,
           w.enabled AND w.deleted_at IS NULL AS enabled
    FROM ${COMMIT_WITHOUT_DISK}, unnest($1::text[], $2::bigint[], $3::int[]) AS m (endpoint_id, fence, free)
    JOIN webhook_endpoint_leases l ON l.endpoint_id = m.endpoint_id AND l.fence = m.fence AND l.owner = $4
      AND l.until > ${NOW}
    JOIN webhook_endpoints w ON w.id = m.endpoint_id
  ), due AS MATERIALIZED (
    SELECT m.endpoint_id, m.fence, d.*
    FROM mine m
    CROSS JOIN LATERAL (
      SELECT d.id, d.kind, d.event_id, d.event_type, d.test_body, d.counted_attempts, d.interruptions, d.next_attempt_at,
             d.started_at
      FROM webhook_deliveries_open d
      WHERE d.endpoint_id = m.endpoint_id AND d.status = 'pending' AND d.next_attempt_at <= ${NOW}
        -- nothing that was made after a discard is due before it (D32)
        AND d.next_attempt_at >= m.kept_from AND d.created_at >= m.kept_from
        AND d.started_fence IS DISTINCT FROM m.fence
      ORDER BY d.next_attempt_at, d.id LIMIT m.free
      FOR UPDATE SKIP LOCKED
    ) AS d
    WHERE m.enabled AND m.blocked_ms IS NULL
  ), started AS (
    UPDATE webhook_deliveries_open d
    SET started_at = ${NOW}, started_fence = (SELECT m.fence FROM mine m WHERE m.endpoint_id = d.endpoint_id)
    -- no join: a plan that was made while the queue was empty would read all of it
    WHERE d.id = ANY (ARRAY(SELECT due.id FROM due))
  ), next AS MATERIALIZED (
    SELECT m.endpoint_id, (
      SELECT greatest(m.blocked_ms, extract(epoch FROM d.next_attempt_at - ${NOW}) * 1000) FROM webhook_deliveries_open d
      WHERE d.endpoint_id = m.endpoint_id AND d.status = 'pending'
        AND d.next_attempt_at > CASE WHEN m.blocked_ms IS NULL THEN ${NOW} ELSE '-infinity' END
        AND d.next_attempt_at >= m.kept_from AND d.created_at >= m.kept_from
      ORDER BY d.next_attempt_at, d.id LIMIT 1)::float8 AS due_ms
    FROM mine m
    -- with every free slot taken, the end of an attempt claims again
    WHERE m.enabled AND m.free > (SELECT count(*) FROM due WHERE due.endpoint_id = m.endpoint_id)
  )
  SELECT m.endpoint_id, m.mode, m.standard, m.url, m.secret, m.previous_secret, m.consecutive_blocks, m.slow_start_since,
         next.due_ms, due.id, due.kind, due.event_id, due.event_type, due.test_body, due.counted_attempts,
         due.interruptions, (extract(epoch FROM ${NOW} - due.started_at) * 1000)::float8 AS interrupted_ago_ms
  FROM mine m
  LEFT JOIN next ON next.endpoint_id = m.endpoint_id
  LEFT JOIN due ON due.endpoint_id = m.endpoint_id
  ORDER BY due.next_attempt_at, due.id`);

/**
 * Records the outcomes of attempts. Each parameter is one column; $20 is this process. An attempt is recorded if its
 * endpoint still has the lease under which it began and its delivery was not started again. A takeover that this
 * statement does not see yet has started nothing. A delivery discarded meanwhile gets `status_if_given_up`. A delivery
 * that ends moves to the partition of its day.
 */
const RECORD = prepared(`
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::int[], $8::int[],
      $9::boolean[], $10::text[], $11::int[], $12::float8[], $13::float8[], $14::float8[], $15::text[], $16::text[],
      $17::text[], $18::text[], $19::text[])
    AS a (id, endpoint_id, fence, status, status_if_given_up, counted_attempts, interruptions, retry_ms, exhausted, outcome,
          status_code, latency_ms, ended_ago_ms, ran_ms, error, phases, response_body, request_headers, response_headers)
  ), next AS MATERIALIZED (
    SELECT a.id, a.endpoint_id, d.partner_id, d.kind, d.attempt_count + 1 AS number, a.counted_attempts, a.interruptions,
           a.retry_ms, a.exhausted AND NOT g.given_up AS exhausted,
           CASE WHEN g.given_up THEN a.status_if_given_up ELSE a.status END AS status, a.outcome, a.status_code,
           a.latency_ms, a.ran_ms, a.error, a.phases, a.response_body, a.request_headers, a.response_headers,
           ${NOW} - a.ended_ago_ms * ${MS} AS ended_at
    FROM given a
    -- each a look-up by its key: as joins, the plan of a quiet minute would read whole tables
    CROSS JOIN LATERAL (
      SELECT w.discard_before FROM webhook_endpoints w JOIN webhook_endpoint_leases l ON l.endpoint_id = w.id
      WHERE w.id = a.endpoint_id AND l.endpoint_id = a.endpoint_id AND l.fence = a.fence AND l.owner = $20 LIMIT 1
    ) w
    CROSS JOIN LATERAL (
      SELECT d.partner_id, d.kind, d.status, d.attempt_count, d.created_at FROM webhook_deliveries_open d
      WHERE d.id = a.id AND d.started_fence = a.fence LIMIT 1 FOR UPDATE
    ) d
    CROSS JOIN LATERAL (
      SELECT d.status = 'discarding' OR coalesce(d.created_at < w.discard_before, false) AS given_up
    ) g
  ), moved AS (
    UPDATE webhook_deliveries d
    SET status = n.status, attempt_count = n.number, counted_attempts = n.counted_attempts,
        interruptions = n.interruptions,
        next_attempt_at = CASE WHEN n.status <> 'pending' THEN NULL
                               WHEN n.retry_ms IS NULL THEN d.next_attempt_at
                               ELSE n.ended_at + n.retry_ms * ${MS} END,
        started_at = NULL, started_fence = NULL, current_phase = NULL,
        -- behind the wait for the row: a replay that started in the meantime has not counted it (D33)
        ended_at = CASE WHEN n.status <> 'pending' THEN clock_timestamp() END,
        delivered_at = CASE WHEN n.status = 'delivered' THEN n.ended_at END,
        failed_at = CASE WHEN n.status = 'failed' THEN n.ended_at END,
        last_outcome = n.outcome, last_status_code = n.status_code, last_latency_ms = round(n.latency_ms)::int,
        last_error = n.error, last_started_at = n.ended_at - n.ran_ms * ${MS}
    FROM next n
    WHERE d.id = n.id AND d.id = ANY (ARRAY(SELECT id FROM next)) AND d.${IS_OPEN}
    RETURNING d.id
  ), recorded AS (
    SELECT n.* FROM next n JOIN moved ON moved.id = n.id
  ), logged AS (
    INSERT INTO webhook_attempts (delivery_id, endpoint_id, partner_id, number, started_at, outcome, status_code, latency_ms,
                                  error, phases, response_body, request_headers, response_headers, recorded_at)
    SELECT id, endpoint_id, partner_id, number, ended_at - ran_ms * ${MS}, outcome, status_code, round(latency_ms)::int,
           error, phases::jsonb, response_body, request_headers::jsonb, response_headers::jsonb, ${NOW}
    FROM recorded
  ), counted AS (${ADD_TO_STATS}
  )
  SELECT id, status, number, exhausted FROM recorded`);

/**
 * $1 deliveries, $2 their fences, $3 phases. Skips a locked delivery, whose attempt is ending. Commits without the disk,
 * because an attempt does not survive a crash.
 */
const STORE_PHASES = prepared(`
  WITH given AS MATERIALIZED (
    SELECT a.id, a.phase FROM ${COMMIT_WITHOUT_DISK}, unnest($1::text[], $2::bigint[], $3::text[]) AS a (id, fence, phase)
    CROSS JOIN LATERAL (
      SELECT FROM webhook_deliveries_open d WHERE d.id = a.id AND a.fence = d.started_fence
      LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) d
  )
  UPDATE webhook_deliveries_open d SET current_phase = (SELECT g.phase FROM given g WHERE g.id = d.id)
  WHERE d.id = ANY (ARRAY(SELECT id FROM given))
  RETURNING d.id`);

/** SQL of open deliveries: starting them and recording their outcomes. All times are the database's (D40). */
@Injectable()
export class DeliveriesRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Starts due deliveries of each endpoint, oldest first. Endpoints leased by another process are missing from the
   * result. The commit does not wait for the disk: if it is lost, the deliveries are due as before (D61).
   */
  async claim(
    owner: string,
    claims: readonly EndpointClaim[],
  ): Promise<ReadonlyMap<string, ClaimedEndpoint>> {
    if (claims.length === 0) return new Map();
    const { rows } = await sql<ClaimRow>(this.manager, CLAIM, [
      claims.map(({ endpointId }) => endpointId),
      claims.map(({ fence }) => fence),
      claims.map(({ free }) => free),
      owner,
    ]);
    const bodies = await this.readBodies(rows);
    const fences = new Map(claims.map(({ endpointId, fence }) => [endpointId, fence]));
    const byEndpoint = Map.groupBy(rows, (row) => row.endpoint_id);
    return new Map(
      [...byEndpoint].map(([endpointId, [first, ...others]]) => [
        endpointId,
        {
          deliveries: [first!, ...others]
            .filter((row) => row.id !== null)
            .map((row) => toStartedDelivery(row, fences.get(endpointId)!, bodies)),
          consecutiveBlocks: first!.consecutive_blocks,
          slowStartSince: first!.slow_start_since,
          nextDueInMs: first!.due_ms,
        },
      ]),
    );
  }

  private async readBodies(rows: readonly ClaimRow[]): Promise<ReadonlyMap<string, string>> {
    const bodies = new Map<string, string>();
    for (const [mode, ofMode] of Map.groupBy(rows, (row) => row.mode)) {
      const ids = ofMode.flatMap((row) => row.event_id ?? []);
      for (const [id, body] of await readBodiesInTheirDays(this.manager, mode, ids)) bodies.set(id, body);
    }
    return bodies;
  }

  /**
   * Records attempts with the next state of each delivery, in one statement. An attempt missing from the result was not
   * recorded, because the endpoint has another owner.
   */
  async record(
    manager: EntityManager,
    owner: string,
    outcomes: readonly AttemptOutcomeRow[],
  ): Promise<readonly RecordedAttempt[]> {
    const { rows } = await sql<{
      id: string;
      status: StoredDeliveryStatus;
      number: number;
      exhausted: boolean;
    }>(manager, RECORD, [...columnsOf(outcomes), owner]);
    return rows.map(({ id, ...row }) => ({ deliveryId: id, ...row }));
  }

  /**
   * Stores the phases of attempts in flight, and returns the deliveries of those that were not locked.
   * @throws a transient conflict if one of the attempts ends at the same time
   */
  async storePhases(
    attempts: readonly (Pick<StartedDelivery, 'id' | 'fence'> & { readonly phase: AttemptPhase })[],
  ): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ id: string }>(this.manager, STORE_PHASES, [
      attempts.map(({ id }) => id),
      attempts.map(({ fence }) => fence),
      attempts.map(({ phase }) => phase),
    ]);
    return new Set(rows.map(({ id }) => id));
  }

  /** Ends the endpoint's slow start, unless a new one has begun after `since`. */
  async endSlowStart(endpointId: string, since: string): Promise<void> {
    await sql(
      this.manager,
      'UPDATE webhook_endpoints SET slow_start_since = NULL WHERE id = $1 AND slow_start_since = $2::timestamptz',
      [endpointId, since],
    );
  }

  /** The partners of endpoints. */
  async listPartners(
    endpointIds: readonly string[],
  ): Promise<readonly { id: string; partnerId: string; mode: Mode }[]> {
    const { rows } = await sql<{ id: string; partner_id: string; mode: Mode }>(
      this.manager,
      'SELECT id, partner_id, mode FROM webhook_endpoints WHERE id = ANY ($1::text[])',
      [endpointIds],
    );
    return rows.map(({ id, partner_id: partnerId, mode }) => ({ id, partnerId, mode }));
  }

  /** Makes a started delivery due again without an attempt, in `delayMs`. */
  async putBack({ id, fence }: Pick<StartedDelivery, 'id' | 'fence'>, delayMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_deliveries_open
       SET started_at = NULL, started_fence = NULL,
           next_attempt_at = CASE WHEN $3::int > 0 THEN ${NOW} + $3::int * ${MS} ELSE next_attempt_at END
       WHERE id = $1 AND started_fence = $2`,
      [id, fence, delayMs],
    );
  }

  /** Ends a started delivery that has nothing to send, because its event was dropped after its retention (D44). */
  async discard({ id, fence }: Pick<StartedDelivery, 'id' | 'fence'>): Promise<void> {
    await sql(
      this.manager,
      `WITH given_up AS (
         DELETE FROM webhook_deliveries d WHERE d.id = $1 AND d.started_fence = $2 AND d.${IS_OPEN}
         ${STORE_GIVEN_UP}`,
      [id, fence],
    );
  }

  /**
   * Endpoints after `after`, in id order, that have due deliveries without an attempt in flight and belong to `owner`
   * or to no process. Jumps from endpoint to endpoint through the index, so that a disabled endpoint's backlog of a
   * million costs one step.
   */
  async listEndpointsDue(owner: string, after: string, limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `WITH RECURSIVE owed AS (
         (SELECT endpoint_id AS id FROM webhook_deliveries_open WHERE status = 'pending' AND endpoint_id > $1
          ORDER BY endpoint_id LIMIT 1)
         UNION ALL
         SELECT (SELECT d.endpoint_id FROM webhook_deliveries_open d
                 WHERE d.status = 'pending' AND d.endpoint_id > owed.id ORDER BY d.endpoint_id LIMIT 1)
         FROM owed WHERE owed.id IS NOT NULL
       )
       SELECT w.id FROM owed JOIN webhook_endpoints w ON w.id = owed.id
       LEFT JOIN webhook_endpoint_leases l ON l.endpoint_id = w.id AND l.until > ${NOW}
       -- no EXISTS: as a semi-join it would read from the beginning of the index, given up or not
       CROSS JOIN LATERAL (
         SELECT FROM webhook_deliveries_open d
         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at <= ${NOW}
           AND (l.fence IS NULL OR d.started_fence IS DISTINCT FROM l.fence) AND ${IS_KEPT}
         LIMIT 1
       ) AS due
       WHERE ${TAKES_ATTEMPTS}
         AND (l.owner IS NULL OR l.owner = $3)
       ORDER BY w.id LIMIT $2`,
      [after, limit, owner],
    );
    return rows.map((row) => row.id);
  }
}

function toStartedDelivery(
  row: ClaimRow,
  fence: string,
  bodies: ReadonlyMap<string, string>,
): StartedDelivery {
  return {
    id: row.id!,
    endpointId: row.endpoint_id,
    mode: row.mode,
    kind: row.kind,
    eventType: row.event_type,
    fence,
    countedAttempts: row.counted_attempts,
    interruptions: row.interruptions,
    ...toTarget(row),
    body: row.event_id === null ? row.test_body : (bodies.get(row.event_id) ?? null),
    interruptedAgoMs: row.interrupted_ago_ms,
  };
}

function columnsOf(outcomes: readonly AttemptOutcomeRow[]): SqlParameter[] {
  const now = performance.now();
  const attempts = outcomes.map(({ attempt }) => attempt);
  const states = outcomes.map(({ after }) => after);
  return [
    attempts.map(({ deliveryId }) => deliveryId),
    attempts.map(({ endpointId }) => endpointId),
    attempts.map(({ fence }) => fence),
    states.map(({ status }) => status),
    outcomes.map(({ afterGivenUp }) => afterGivenUp.status),
    states.map(({ countedAttempts }) => countedAttempts),
    states.map(({ interruptions }) => interruptions),
    states.map(({ retryInMs }) => retryInMs),
    states.map(({ exhausted }) => exhausted),
    attempts.map(({ outcome }) => outcome),
    attempts.map(({ statusCode }) => statusCode),
    attempts.map(({ latencyMs }) => latencyMs),
    attempts.map(({ endedAt }) => now - endedAt),
    // The latency ends with the status line; the attempt ended after its body.
    attempts.map(({ phases, latencyMs }) => phases?.totalMs ?? latencyMs),
    attempts.map(({ error }) => error),
    attempts.map(phasesJson),
    attempts.map(({ responseBody }) => responseBody),
    attempts.map(({ requestHeaders }) => jsonOrNull(requestHeaders)),
    attempts.map(({ responseHeaders }) => jsonOrNull(responseHeaders)),
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
