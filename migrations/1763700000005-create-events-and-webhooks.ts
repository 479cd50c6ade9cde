import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Events (the service's outbox) and webhook deliveries (D28 to D34, D39). */
export class CreateEventsAndWebhooks1763700000005 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE SEQUENCE event_positions;

      -- One partition a day and mode, made ahead and dropped when old. No foreign keys: to attach and to drop a
      -- partition would lock the tables that they name.
      CREATE TABLE events (
        -- in byte order: an id begins with its time, so the ids of a day are a range
        id text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C" NOT NULL,
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        type text COLLATE "C" NOT NULL,
        -- text, not jsonb: made once, these bytes are sent and listed for ever (D28)
        body text COLLATE "C" NOT NULL,
        -- given after the commit, so that the feed never shows a later event before an earlier commit (D39)
        position bigint,
        created_at timestamptz NOT NULL
      ) PARTITION BY LIST (mode);
      CREATE TABLE events_sandbox PARTITION OF events (PRIMARY KEY (id))
        FOR VALUES IN ('sandbox') PARTITION BY RANGE (id);
      CREATE TABLE events_live PARTITION OF events (PRIMARY KEY (id)) FOR VALUES IN ('live') PARTITION BY RANGE (id);
      CREATE INDEX events_feed ON events (partner_id, mode, position) WHERE position IS NOT NULL;
      CREATE INDEX events_of_partner ON events (partner_id, id DESC);
      CREATE INDEX events_unpositioned ON events (created_at) WHERE position IS NULL;

      -- Which positions lie in which partition of events: a reader looks at those alone.
      CREATE TABLE event_feed_days (
        partition_name text COLLATE "C" PRIMARY KEY,
        mode text COLLATE "C" NOT NULL,
        first_position bigint NOT NULL,
        last_position bigint NOT NULL
      ) WITH (fillfactor = 50);

      CREATE TABLE webhook_endpoints (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        url text COLLATE "C" NOT NULL,
        description text COLLATE "C",
        event_types text[] COLLATE "C",
        secret text COLLATE "C" NOT NULL,
        -- D29: during a rotation the old secret signs too
        previous_secret text COLLATE "C",
        previous_secret_until timestamptz,
        -- blocked is derived from blocked_until (D31)
        enabled boolean NOT NULL DEFAULT true,
        blocked_until timestamptz,
        consecutive_blocks int NOT NULL DEFAULT 0 CHECK (consecutive_blocks >= 0),
        disabled_reason text COLLATE "C",
        last_success_at timestamptz,
        deleted_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      ) WITH (fillfactor = 70);
      CREATE INDEX webhook_endpoints_list ON webhook_endpoints (partner_id, created_at DESC, id DESC);

      -- What is open lies in one partition, whatever its age; what has ended lies in the partition of the day it was
      -- made. A statement ends a delivery by deleting and inserting it: others that wait for the row pass over it.
      CREATE TABLE webhook_deliveries (
        id text COLLATE "C" NOT NULL,
        endpoint_id text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C" NOT NULL,
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        event_id text COLLATE "C",
        event_type text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('event', 'resend', 'replay', 'test')),
        -- held is derived: pending and the endpoint disabled (D32); discarding: given up while an attempt is under way
        status text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'discarding', 'delivered', 'failed', 'discarded')),
        -- the body of a test, which is no event
        test_body text COLLATE "C",
        attempt_count int NOT NULL DEFAULT 0,
        -- attempts that count among the six: interrupted ones do not (D30)
        counted_attempts int NOT NULL DEFAULT 0,
        interruptions int NOT NULL DEFAULT 0,
        next_attempt_at timestamptz,
        lease_owner text COLLATE "C",
        -- when the attempt under way was claimed: an interrupted one is logged with it (D30)
        claimed_at timestamptz,
        lease_until timestamptz,
        fence bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(),
        delivered_at timestamptz,
        failed_at timestamptz,
        -- when the row left what is open
        ended_at timestamptz,
        CHECK ((kind = 'test') = (event_id IS NULL)),
        CHECK ((status IN ('pending', 'discarding')) = (ended_at IS NULL))
      ) PARTITION BY LIST (status);
      CREATE TABLE webhook_deliveries_open PARTITION OF webhook_deliveries (
        PRIMARY KEY (id),
        FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints (id)
      ) FOR VALUES IN ('pending', 'discarding')
        -- a queue: rows come and go
        WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
      CREATE TABLE webhook_deliveries_ended PARTITION OF webhook_deliveries
        FOR VALUES IN ('delivered', 'failed', 'discarded') PARTITION BY LIST (mode);
      CREATE TABLE webhook_deliveries_sandbox PARTITION OF webhook_deliveries_ended (PRIMARY KEY (id, created_at))
        FOR VALUES IN ('sandbox') PARTITION BY RANGE (created_at);
      CREATE TABLE webhook_deliveries_live PARTITION OF webhook_deliveries_ended (PRIMARY KEY (id, created_at))
        FOR VALUES IN ('live') PARTITION BY RANGE (created_at);
      -- The oldest due deliveries of one endpoint, whatever waits besides.
      CREATE INDEX webhook_deliveries_due ON webhook_deliveries_open (endpoint_id, next_attempt_at, id)
        WHERE status = 'pending';
      -- What is in flight: an index of a few rows, whatever waits.
      CREATE INDEX webhook_deliveries_leased ON webhook_deliveries_open (endpoint_id, lease_until)
        WHERE lease_until IS NOT NULL;
      CREATE INDEX webhook_deliveries_discarding ON webhook_deliveries_open (lease_until) WHERE status = 'discarding';
      CREATE INDEX webhook_deliveries_list ON webhook_deliveries (endpoint_id, created_at DESC, id DESC);
      CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);

      CREATE TABLE webhook_attempts (
        delivery_id text COLLATE "C" NOT NULL,
        endpoint_id text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C" NOT NULL,
        number int NOT NULL,
        started_at timestamptz NOT NULL,
        outcome text COLLATE "C" NOT NULL,
        status_code smallint,
        latency_ms int NOT NULL,
        error text COLLATE "C",
        phases jsonb,
        request_headers jsonb,
        response_headers jsonb,
        response_body text COLLATE "C",
        -- by the day of this: an attempt of a process that died may be recorded weeks after it started
        recorded_at timestamptz NOT NULL DEFAULT now()
      ) PARTITION BY RANGE (recorded_at);
      CREATE INDEX webhook_attempts_by_delivery ON webhook_attempts (delivery_id, number);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP TABLE webhook_attempts, webhook_deliveries, webhook_endpoints, event_feed_days, events; DROP SEQUENCE event_positions',
    );
  }
}
