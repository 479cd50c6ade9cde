import type { MigrationInterface, QueryRunner } from 'typeorm';
import { CLAIM_FUNCTION as CLAIM_FUNCTION_BEFORE } from './1763700000036-claim-from-many-endpoints.js';

/**
 * A claim takes the same few statements for any number of endpoints. It always reads open deliveries by index, however
 * many the planner assumes (D34, D49, B7).
 */
export class ClaimAllAtOnce1763700000043 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(WAIT_FOR_VACUUM);
    // The table will grow again: truncating it in a quiet hour would make all plans assume few rows.
    await runner.query('ALTER TABLE webhook_deliveries_open SET (vacuum_truncate = off)');
    await runner.query(TYPES);
    await runner.query(CLAIM_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(WAIT_FOR_VACUUM);
    await runner.query(CLAIM_FUNCTION_BEFORE.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
    await runner.query('DROP TYPE webhook_claim_window, leased_webhook_delivery');
    await runner.query('ALTER TABLE webhook_deliveries_open RESET (vacuum_truncate)');
  }
}

/** A VACUUM of the table may be running. ALTER TABLE waits for it without blocking reads or writes. */
const WAIT_FOR_VACUUM = `SET LOCAL lock_timeout = '30s'`;

/** One endpoint's send window, and its leased deliveries. */
const TYPES = `
  CREATE TYPE webhook_claim_window AS (
    endpoint_id text, partner_id text, mode text, standard boolean, url text, secret text, previous_secret text,
    kept_from timestamptz, blocked_ms float8, slots int, free int, of_others int
  );
  CREATE TYPE leased_webhook_delivery AS (
    endpoint_id text, id text, event_type text, event_id text, test_body text, fence bigint, counted_attempts int,
    due_at timestamptz, lapsed_claimed_at timestamptz, lapsed_until timestamptz
  )`;

/**
 * Combines migrations 1763700000036 and 1763700000042. Each statement serves all endpoints, because starting a leasing
 * statement, or planning the days of the bodies, costs more than running it. Each statement sees everything committed
 * before it. Claims of one endpoint take turns at the advisory lock, so the in-flight count is exact across all
 * workers, including attempts of discarded deliveries. All workers take the locks in the same order.
 *
 * Plans are made once per connection, often while nothing is open, and for an empty table every index looks equally
 * good. Each read therefore requests the order of exactly one index, and the settings keep the planner from sorting. A
 * claim in progress during the rollout calls `claim_webhook_deliveries`; the next release drops it.
 */
const CLAIM_FUNCTION = `
  CREATE OR REPLACE FUNCTION claim_many_webhook_deliveries (
    of_endpoints text[], of_slots int[], most_in_flight int, owner text, lease_ms int
  ) RETURNS TABLE (
    endpoint_id text, partner_id text, mode text, standard boolean, id text, event_type text, fence bigint, counted_attempts int, url text,
    secret text, previous_secret text, body text, lapsed_ago_ms float8, lapsed_ran_ms float8, due_at timestamptz,
    next_look_ms float8, room int
  ) LANGUAGE plpgsql SET enable_seqscan = off SET enable_sort = off AS $claim$
  #variable_conflict use_column
  DECLARE
    -- the caller's statement began before the locks were waited for
    claim_time timestamptz;
    windows webhook_claim_window[];
    taken leased_webhook_delivery[];
    places tid[];
    of_mode text;
    wanted text[];
    found_ids text[];
    found_bodies text[];
    event_ids text[];
    bodies text[];
  BEGIN
    PERFORM pg_advisory_xact_lock(7302116, a.hash)
    FROM (SELECT hashtext(of_id) AS hash FROM unnest(of_endpoints) AS of_id ORDER BY 1) AS a;
    claim_time := clock_timestamp();

    SELECT array_agg(ROW (w.id, w.partner_id, w.mode, 'standard' = ANY (w.signature_schemes), w.url, w.secret,
        CASE WHEN w.previous_secret_until > claim_time THEN w.previous_secret END,
        coalesce(w.discard_before, '-infinity'),
        CASE WHEN w.blocked_until > claim_time THEN extract(epoch FROM w.blocked_until - claim_time) * 1000 END,
        a.slots, least(w.ramp_window, most_in_flight) - f.leased, f.of_others)::webhook_claim_window)
    INTO windows
    FROM unnest(of_endpoints, of_slots) AS a (of_id, slots)
    -- OFFSET: with the conditions below, an index of those that are not deleted looks as good as that of the ids
    CROSS JOIN LATERAL (SELECT * FROM webhook_endpoints e WHERE e.id = a.of_id OFFSET 0) AS w
    CROSS JOIN LATERAL (
      SELECT count(*) AS leased, count(*) FILTER (WHERE l.lease_owner <> owner) AS of_others
      FROM (SELECT d.lease_owner FROM webhook_deliveries_open d
            WHERE d.endpoint_id = w.id AND d.lease_until > claim_time ORDER BY d.lease_until) AS l
    ) AS f
    WHERE w.enabled AND w.deleted_at IS NULL;

    SELECT array_agg(ROW (w.endpoint_id, d.id, d.event_type, d.event_id, d.test_body, d.fence + 1, d.counted_attempts,
        d.next_attempt_at, d.claimed_at, d.lease_until)::leased_webhook_delivery), array_agg(d.place)
    INTO taken, places
    FROM unnest(windows) AS w
    CROSS JOIN LATERAL (
      SELECT d.ctid AS place, d.* FROM webhook_deliveries_open d
      WHERE d.endpoint_id = w.endpoint_id AND d.status = 'pending' AND d.next_attempt_at <= claim_time
        AND (d.lease_until IS NULL OR d.lease_until <= claim_time)
        -- nothing that was made after a discard is due before it (D32)
        AND d.next_attempt_at >= w.kept_from AND d.created_at >= w.kept_from
      ORDER BY d.next_attempt_at, d.id
      LIMIT greatest(least(w.slots, w.free), 0)
      FOR UPDATE OF d SKIP LOCKED
    ) AS d
    WHERE w.blocked_ms IS NULL AND w.free > 0;

    -- Where they were locked they stay until this transaction ends. By a join, or by its id, each could be looked for in
    -- the whole of some index.
    UPDATE webhook_deliveries_open d
    SET lease_owner = owner, claimed_at = claim_time, lease_until = claim_time + lease_ms * interval '1 millisecond', fence = d.fence + 1
    WHERE d.ctid = ANY (places);

    -- A plan for these ids has their days alone.
    FOR of_mode, wanted IN
      SELECT w.mode, array_agg(t.event_id) FROM unnest(taken) AS t JOIN unnest(windows) AS w ON w.endpoint_id = t.endpoint_id
      WHERE t.event_id IS NOT NULL GROUP BY w.mode
    LOOP
      EXECUTE format('SELECT array_agg(e.id), array_agg(e.body) FROM %I e WHERE e.id = ANY ($1)', 'events_' || of_mode)
        INTO found_ids, found_bodies USING wanted;
      event_ids := event_ids || found_ids;
      bodies := bodies || found_bodies;
    END LOOP;

    RETURN QUERY
    SELECT w.endpoint_id, w.partner_id, w.mode, w.standard, t.id, t.event_type, t.fence, t.counted_attempts, w.url,
      w.secret, w.previous_secret, coalesce(t.test_body, b.body),
      (extract(epoch FROM claim_time - t.lapsed_until) * 1000)::float8,
      (extract(epoch FROM t.lapsed_until - t.lapsed_claimed_at) * 1000)::float8,
      t.due_at, NULL::float8, NULL::int
    FROM unnest(taken) AS t
    JOIN unnest(windows) AS w ON w.endpoint_id = t.endpoint_id
    LEFT JOIN unnest(event_ids, bodies) AS b (event_id, body) ON b.event_id = t.event_id;

    RETURN QUERY
    SELECT w.endpoint_id, w.partner_id, w.mode, w.standard, NULL::text, NULL::text, NULL::bigint, NULL::int, NULL::text,
      NULL::text, NULL::text, NULL::text, NULL::float8, NULL::float8, NULL::timestamptz,
      CASE
        WHEN w.blocked_ms IS NOT NULL THEN w.blocked_ms
        -- Full, or took the last slot with more of its own. Whose own attempts fill it looks at their ends; nobody tells
        -- of the ends of others.
        WHEN w.free <= c.taken THEN CASE WHEN c.taken < w.slots AND w.of_others > 0 THEN 500 END
        -- With every slot taken nobody asks for the next due time: the end of an attempt does.
        WHEN c.taken < w.slots THEN (
          SELECT (extract(epoch FROM d.next_attempt_at - claim_time) * 1000)::float8 FROM webhook_deliveries_open d
          WHERE d.endpoint_id = w.endpoint_id AND d.status = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= claim_time)
            AND d.next_attempt_at >= w.kept_from AND d.created_at >= w.kept_from
          ORDER BY d.next_attempt_at, d.id LIMIT 1)
      END,
      CASE WHEN w.blocked_ms IS NULL AND w.free > 0 THEN w.free - c.taken END
    FROM unnest(windows) AS w
    LEFT JOIN (SELECT t.endpoint_id, count(*)::int AS taken FROM unnest(taken) AS t GROUP BY 1) AS n
      ON n.endpoint_id = w.endpoint_id
    CROSS JOIN LATERAL (SELECT coalesce(n.taken, 0) AS taken) AS c
    WHERE CASE
      WHEN w.blocked_ms IS NOT NULL
        -- no EXISTS, which may be answered from a list of all that is open
        THEN (SELECT true FROM webhook_deliveries_open d WHERE d.endpoint_id = w.endpoint_id AND d.status = 'pending'
              ORDER BY d.next_attempt_at, d.id LIMIT 1)
      ELSE w.free > 0 OR w.of_others > 0
    END;
  END
  $claim$`;
