import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Slow start and exact concurrency of webhooks, discards as single rows, replays, and alerts (D31 to D34). */
export class PaceWebhooksAndReplay1763700000006 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE webhook_endpoints
        -- attempts in flight that a receiver which comes back may get; null: as many as the setting says
        ADD COLUMN ramp_window int CHECK (ramp_window > 0),
        ADD COLUMN ramp_widened_at timestamptz,
        -- pending deliveries created before this are discarded; the worker writes it down row by row
        ADD COLUMN discard_before timestamptz;

      ALTER TABLE webhook_deliveries ADD COLUMN replay_id text COLLATE "C";
      CREATE INDEX webhook_deliveries_by_replay ON webhook_deliveries (replay_id, status) WHERE replay_id IS NOT NULL;

      CREATE TABLE webhook_replays (
        id text COLLATE "C" PRIMARY KEY,
        endpoint_id text COLLATE "C" NOT NULL REFERENCES webhook_endpoints (id),
        partner_id text COLLATE "C" NOT NULL,
        status text COLLATE "C" NOT NULL CHECK (status IN ('running', 'completed', 'canceled')),
        since timestamptz NOT NULL,
        until timestamptz NOT NULL,
        event_types text[] COLLATE "C",
        statuses text[] COLLATE "C" NOT NULL,
        total int NOT NULL,
        created int NOT NULL DEFAULT 0,
        -- when the last step was made: the pace is the replay's, however many workers there are
        advanced_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        ended_at timestamptz
      );
      CREATE INDEX webhook_replays_running ON webhook_replays (id) WHERE status = 'running';

      -- What a replay still has to repeat: chosen once, when it begins, whatever happens meanwhile.
      CREATE TABLE webhook_replay_items (
        replay_id text COLLATE "C" NOT NULL REFERENCES webhook_replays (id),
        place int NOT NULL,
        delivery_id text COLLATE "C" NOT NULL,
        PRIMARY KEY (replay_id, place)
      );

      CREATE TABLE alerts (
        id text COLLATE "C" PRIMARY KEY,
        type text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C",
        subject_id text COLLATE "C" NOT NULL,
        details jsonb NOT NULL DEFAULT '{}',
        -- the same thing is reported once; null: every time
        once_key text COLLATE "C",
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX alerts_list ON alerts (created_at, id);
      CREATE UNIQUE INDEX alerts_once ON alerts (type, subject_id, once_key) WHERE once_key IS NOT NULL;
    `);
    await runner.query(CLAIMED_TYPE);
    await runner.query(CLAIM_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP FUNCTION claim_webhook_deliveries (text, int, int, text, int);
      DROP TABLE alerts, webhook_replay_items, webhook_replays;
      DROP TYPE claimed_webhook_delivery;
      DROP INDEX webhook_deliveries_by_replay;
      ALTER TABLE webhook_deliveries DROP COLUMN replay_id;
      ALTER TABLE webhook_endpoints DROP COLUMN ramp_window, DROP COLUMN ramp_widened_at, DROP COLUMN discard_before;
    `);
  }
}

const CLAIMED_TYPE = `
  CREATE TYPE claimed_webhook_delivery AS (
    id text, event_type text, event_id text, test_body text, fence bigint, counted_attempts int,
    due_at timestamptz, lapsed_claimed_at timestamptz, lapsed_until timestamptz
  )`;

/**
 * Leases due deliveries of one endpoint and returns when to check again, in one round trip. It is a function, because
 * each of its statements then sees everything committed before it. Claims of one endpoint take turns at the advisory
 * lock, so the in-flight count is exact across all workers, including attempts of discarded deliveries. Every statement
 * names the status, which limits its plan to the open partition. The plan that reads the bodies is made for these ids,
 * which limits it to their days.
 */
export const CLAIM_FUNCTION = `
  CREATE FUNCTION claim_webhook_deliveries (
    of_endpoint text, slots int, most_in_flight int, owner text, lease_ms int
  ) RETURNS TABLE (
    id text, event_type text, fence bigint, counted_attempts int, url text, secret text, previous_secret text,
    body text, lapsed_ago_ms float8, lapsed_ran_ms float8, due_at timestamptz, next_look_ms float8, room int
  ) LANGUAGE plpgsql AS $claim$
  #variable_conflict use_column
  DECLARE
    -- the caller's statement began before the lock was waited for
    claim_time timestamptz;
    endpoint webhook_endpoints%ROWTYPE;
    free int;
    of_others int;
    found_count int;
    look timestamptz;
    taken claimed_webhook_delivery[];
    event_ids text[];
    bodies text[];
  BEGIN
    PERFORM pg_advisory_xact_lock(7302116, hashtext(of_endpoint));
    claim_time := clock_timestamp();
    SELECT * INTO endpoint FROM webhook_endpoints w WHERE w.id = of_endpoint AND w.enabled AND w.deleted_at IS NULL;
    IF NOT FOUND THEN RETURN; END IF;
    IF endpoint.blocked_until > claim_time THEN
      IF EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = of_endpoint AND d.status = 'pending') THEN
        next_look_ms := extract(epoch FROM endpoint.blocked_until - claim_time) * 1000;
        RETURN NEXT;
      END IF;
      RETURN;
    END IF;

    SELECT least(endpoint.ramp_window, most_in_flight) - count(*), count(*) FILTER (WHERE d.lease_owner <> owner)
    INTO free, of_others
    FROM webhook_deliveries d
    WHERE d.endpoint_id = of_endpoint AND d.status IN ('pending', 'discarding') AND d.lease_until > claim_time;
    -- Full. Whose own attempts fill it looks at their ends; nobody tells of the ends of others.
    IF free <= 0 THEN
      IF of_others > 0 THEN
        next_look_ms := 500;
        RETURN NEXT;
      END IF;
      RETURN;
    END IF;

    WITH due AS (
      SELECT d.id, d.claimed_at, d.lease_until
      FROM webhook_deliveries d
      WHERE d.endpoint_id = of_endpoint AND d.status = 'pending' AND d.next_attempt_at <= claim_time
        AND (d.lease_until IS NULL OR d.lease_until <= claim_time)
        AND (endpoint.discard_before IS NULL OR d.created_at >= endpoint.discard_before)
      ORDER BY d.next_attempt_at, d.id
      LIMIT least(slots, free)
      FOR UPDATE OF d SKIP LOCKED
    ), leased AS (
      UPDATE webhook_deliveries d
      SET lease_owner = owner, claimed_at = claim_time, lease_until = claim_time + lease_ms * interval '1 millisecond', fence = d.fence + 1
      FROM due
      WHERE d.id = due.id AND d.status = 'pending'
      RETURNING d.id, d.event_type, d.event_id, d.test_body, d.fence, d.counted_attempts, d.next_attempt_at,
        due.claimed_at, due.lease_until
    )
    SELECT array_agg(ROW (l.*)::claimed_webhook_delivery), array_agg(l.event_id) FILTER (WHERE l.event_id IS NOT NULL), count(*)
    INTO taken, event_ids, found_count
    FROM leased l;

    IF event_ids IS NOT NULL THEN
      EXECUTE format('SELECT array_agg(e.id), array_agg(e.body) FROM %I e WHERE e.id = ANY ($1)', 'events_' || endpoint.mode)
        INTO event_ids, bodies USING event_ids;
    END IF;
    RETURN QUERY
    SELECT t.id, t.event_type, t.fence, t.counted_attempts, endpoint.url, endpoint.secret,
      CASE WHEN endpoint.previous_secret_until > claim_time THEN endpoint.previous_secret END,
      coalesce(t.test_body, b.body),
      (extract(epoch FROM claim_time - t.lapsed_until) * 1000)::float8,
      (extract(epoch FROM t.lapsed_until - t.lapsed_claimed_at) * 1000)::float8,
      t.due_at, NULL::float8, NULL::int
    FROM unnest(taken) AS t LEFT JOIN unnest(event_ids, bodies) AS b (event_id, body) ON b.event_id = t.event_id;

    id := NULL;
    room := free - found_count;
    -- Took the last slot of the window, with more of its own: the ends of others free what it waits for.
    IF room = 0 AND found_count < slots AND of_others > 0 THEN
      next_look_ms := 500;
    -- With every slot taken nobody asks for the next due time: the end of an attempt does.
    ELSIF found_count < least(slots, free) THEN
      SELECT d.next_attempt_at INTO look FROM webhook_deliveries d
      WHERE d.endpoint_id = of_endpoint AND d.status = 'pending' AND (d.lease_until IS NULL OR d.lease_until <= claim_time)
        AND (endpoint.discard_before IS NULL OR d.created_at >= endpoint.discard_before)
      ORDER BY d.next_attempt_at, d.id LIMIT 1;
      next_look_ms := extract(epoch FROM look - claim_time) * 1000;
    END IF;
    RETURN NEXT;
  END
  $claim$`;
