import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Orders and top-ups are claimed by partner and mode (D41): both indexes hold only open rows, which are few. Backlogs
 * of endpoints and replays are processed in steps (D32, D33).
 */
export class DivideWork1763700000021 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX orders_due;
      CREATE INDEX orders_due ON orders (partner_id, mode, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      DROP INDEX topups_due;
      CREATE INDEX topups_due ON topups (partner_id, mode, next_attempt_at) WHERE next_attempt_at IS NOT NULL;

      -- What an endpoint that was enabled still has to do with its deliveries; the row goes when that is done.
      CREATE TABLE webhook_backlog_requests (
        endpoint_id text COLLATE "C" PRIMARY KEY REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
        step text COLLATE "C" NOT NULL CHECK (step IN ('release', 'find_last_success', 'resend')),
        resend boolean NOT NULL,
        requested_at timestamptz NOT NULL DEFAULT now(),
        -- the last 2xx before the request, as far as it is read
        last_success_at timestamptz,
        -- the last delivery that the step has read
        cursor_at timestamptz,
        cursor_id text COLLATE "C",
        resent int NOT NULL DEFAULT 0,
        -- another resend was asked for before this one was done; it begins then
        resend_again boolean NOT NULL DEFAULT false,
        -- when it had its last turn, so that large ones take turns with the others
        advanced_at timestamptz
      );

      ALTER TABLE webhook_replays
        -- what it repeats is still being chosen; the last delivery that was looked at
        ADD COLUMN choosing boolean NOT NULL DEFAULT false,
        ADD COLUMN chosen_to_at timestamptz,
        ADD COLUMN chosen_to_id text COLLATE "C";
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE webhook_backlog_requests;
      ALTER TABLE webhook_replays DROP COLUMN choosing, DROP COLUMN chosen_to_at, DROP COLUMN chosen_to_id;
      DROP INDEX orders_due;
      CREATE INDEX orders_due ON orders (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      DROP INDEX topups_due;
      CREATE INDEX topups_due ON topups (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
    `);
  }
}
