import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Events, the outbox of the service, and what is owed to webhook endpoints (D28 to D34, D39). */
export class CreateEventsAndWebhooks1763700000005 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE SEQUENCE event_positions;

      CREATE TABLE events (
        id text PRIMARY KEY,
        partner_id text NOT NULL REFERENCES partners (id),
        mode text NOT NULL CHECK (mode IN ('sandbox', 'live')),
        type text NOT NULL,
        -- text, not jsonb: made once, these bytes are sent and listed for ever (D28)
        body text NOT NULL,
        -- given after the commit, so that the feed never shows a later event before an earlier commit (D39)
        position bigint,
        created_at timestamptz NOT NULL
      );
      CREATE UNIQUE INDEX events_feed ON events (partner_id, mode, position) WHERE position IS NOT NULL;
      CREATE INDEX events_of_partner ON events (partner_id, created_at DESC, id DESC);
      CREATE INDEX events_unpositioned ON events (created_at) WHERE position IS NULL;

      CREATE TABLE webhook_endpoints (
        id text PRIMARY KEY,
        partner_id text NOT NULL REFERENCES partners (id),
        mode text NOT NULL CHECK (mode IN ('sandbox', 'live')),
        url text NOT NULL,
        description text,
        event_types text[],
        secret text NOT NULL,
        -- D29: during a rotation the old secret signs too
        previous_secret text,
        previous_secret_until timestamptz,
        -- blocked is derived from blocked_until (D31)
        enabled boolean NOT NULL DEFAULT true,
        blocked_until timestamptz,
        consecutive_blocks int NOT NULL DEFAULT 0 CHECK (consecutive_blocks >= 0),
        disabled_reason text,
        last_success_at timestamptz,
        deleted_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      ) WITH (fillfactor = 70);
      CREATE INDEX webhook_endpoints_list ON webhook_endpoints (partner_id, created_at DESC, id DESC);

      CREATE TABLE webhook_deliveries (
        id text PRIMARY KEY,
        endpoint_id text NOT NULL REFERENCES webhook_endpoints (id),
        event_id text REFERENCES events (id),
        event_type text NOT NULL,
        kind text NOT NULL CHECK (kind IN ('event', 'resend', 'replay', 'test')),
        -- held is derived: pending and the endpoint disabled (D32)
        status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'discarded')),
        -- the body of a test, which is no event
        test_body text,
        attempt_count int NOT NULL DEFAULT 0,
        -- attempts that count among the six: interrupted ones do not (D30)
        counted_attempts int NOT NULL DEFAULT 0,
        interruptions int NOT NULL DEFAULT 0,
        next_attempt_at timestamptz,
        lease_owner text,
        -- when the attempt under way was claimed: an interrupted one is logged with it (D30)
        claimed_at timestamptz,
        lease_until timestamptz,
        fence bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(),
        delivered_at timestamptz,
        failed_at timestamptz,
        CHECK ((kind = 'test') = (event_id IS NULL))
      ) WITH (fillfactor = 70);
      -- The oldest due deliveries of one endpoint, whatever lies in the table.
      CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at, id)
        WHERE status = 'pending';
      CREATE INDEX webhook_deliveries_due_anywhere ON webhook_deliveries (next_attempt_at) WHERE status = 'pending';
      CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, created_at DESC, id DESC);
      CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);

      -- One partition a day, dropped when old.
      CREATE TABLE webhook_attempts (
        delivery_id text NOT NULL,
        endpoint_id text NOT NULL,
        number int NOT NULL,
        started_at timestamptz NOT NULL,
        outcome text NOT NULL,
        status_code smallint,
        latency_ms int NOT NULL,
        error text,
        phases jsonb,
        request_headers jsonb,
        response_headers jsonb,
        response_body text
      ) PARTITION BY RANGE (started_at);
      CREATE INDEX webhook_attempts_by_delivery ON webhook_attempts (delivery_id, number);
      CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE webhook_attempts, webhook_deliveries, webhook_endpoints, events; DROP SEQUENCE event_positions',
    );
  }
}
