import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Stores each delivery's last attempt with it, so that lists can show it and filter by it. Sums up an endpoint's
 * attempts in one row per quarter of an hour, so that no query has to count deliveries.
 */
export class RollUpWebhookAttempts1763700000030 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE webhook_deliveries
        ADD COLUMN last_outcome text COLLATE "C",
        ADD COLUMN last_status_code smallint,
        ADD COLUMN last_latency_ms int,
        ADD COLUMN last_error text COLLATE "C",
        ADD COLUMN last_started_at timestamptz;
      -- What was never tried has neither, and what was delivered is found by its status.
      CREATE INDEX webhook_deliveries_by_code ON webhook_deliveries (endpoint_id, last_status_code, created_at DESC, id DESC)
        WHERE last_status_code IS NOT NULL;
      CREATE INDEX webhook_deliveries_by_outcome ON webhook_deliveries (endpoint_id, last_outcome, created_at DESC, id DESC)
        WHERE last_outcome <> 'delivered';

      CREATE TABLE webhook_endpoint_stats (
        endpoint_id text COLLATE "C" NOT NULL,
        -- the beginning of the quarter of an hour in which the attempts ended
        at timestamptz NOT NULL,
        -- attempts, but for tests
        delivered int NOT NULL,
        failed int NOT NULL,
        -- deliveries whose last attempt failed, and those of them after last_success_at
        given_up int NOT NULL,
        given_up_since_success int NOT NULL,
        -- how many attempts took how long, by the classes of latency-classes.ts
        latencies int[] NOT NULL,
        last_success_at timestamptz,
        PRIMARY KEY (endpoint_id, at)
      -- every batch of attempts writes the newest rows
      ) WITH (fillfactor = 50);
      CREATE INDEX webhook_endpoint_stats_age ON webhook_endpoint_stats (at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE webhook_endpoint_stats;
      DROP INDEX webhook_deliveries_by_outcome, webhook_deliveries_by_code;
      ALTER TABLE webhook_deliveries DROP COLUMN last_outcome, DROP COLUMN last_status_code,
        DROP COLUMN last_latency_ms, DROP COLUMN last_error, DROP COLUMN last_started_at;
    `);
  }
}
