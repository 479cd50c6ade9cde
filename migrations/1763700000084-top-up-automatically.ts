import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Automatic top-ups: one rule per eSIM, and the rule that placed a top-up (D67). */
export class TopUpAutomatically1763700000084 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE topups ADD COLUMN auto_topup_id text COLLATE "C";
      CREATE TABLE esim_auto_topups (
        esim_id text COLLATE "C" PRIMARY KEY REFERENCES esims (id) ON DELETE CASCADE,
        id text COLLATE "C" NOT NULL,
        mode text COLLATE "C" NOT NULL,
        at_percent smallint NOT NULL CHECK (at_percent IN (50, 80, 100)),
        package_id text COLLATE "C" NOT NULL,
        max_times int NOT NULL CHECK (max_times > 0),
        max_price_amount bigint NOT NULL CHECK (max_price_amount >= 0),
        max_price_currency text COLLATE "C" NOT NULL,
        limited_key_id text COLLATE "C",
        -- set while a crossing waits for its top-up
        due_at timestamptz,
        last_failure_code text COLLATE "C",
        last_failed_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX esim_auto_topups_due ON esim_auto_topups (mode, due_at) WHERE due_at IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE esim_auto_topups;
      ALTER TABLE topups DROP COLUMN auto_topup_id`);
  }
}
