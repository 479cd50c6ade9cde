import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A partner's orders and spending by quarter-hour, for the overview. The worker counts them, not the orders. */
export class RollUpActivity1763700000086 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE partner_activity (
        partner_id text COLLATE "C" NOT NULL,
        mode text COLLATE "C" NOT NULL,
        -- the beginning of the quarter-hour in which the orders and top-ups were accepted
        at timestamptz NOT NULL,
        currency text COLLATE "C" NOT NULL,
        orders int NOT NULL,
        failed int NOT NULL,
        -- price of the issued eSIMs and completed top-ups, in minor units
        cost bigint NOT NULL,
        -- orders and top-ups without a result; the quarter-hour is counted again until there is none
        open int NOT NULL,
        PRIMARY KEY (partner_id, mode, at, currency)
      );
      CREATE INDEX partner_activity_open ON partner_activity (at) WHERE open > 0;
      CREATE INDEX partner_activity_age ON partner_activity (at);

      CREATE TABLE partner_activity_progress (
        id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
        -- everything accepted until then is counted
        counted_to timestamptz NOT NULL
      );
      INSERT INTO partner_activity_progress (counted_to)
      SELECT now() - CASE WHEN EXISTS (SELECT FROM orders) THEN interval '62 days' ELSE interval '1 hour' END;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE partner_activity_progress, partner_activity');
  }
}
