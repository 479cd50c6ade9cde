import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The shared rate of provider calls, and provider health for operators. */
export class CreateUpstreamPace1763700000009 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- A crash may forget it: one backlog of slots is all that it holds.
      CREATE UNLOGGED TABLE upstream_pace (
        provider text COLLATE "C" PRIMARY KEY,
        next_slot_at timestamptz NOT NULL
      ) WITH (fillfactor = 20);

      CREATE TABLE provider_health (
        provider text COLLATE "C" PRIMARY KEY,
        state text COLLATE "C" NOT NULL DEFAULT 'unknown' CHECK (state IN ('ok', 'failing', 'unknown')),
        last_ok_at timestamptz,
        last_error_at timestamptz,
        last_error_code text COLLATE "C",
        balance_micros bigint,
        balance_currency text COLLATE "C",
        balance_at timestamptz,
        last_sync_at timestamptz,
        updated_at timestamptz NOT NULL DEFAULT now(),
        CHECK ((balance_micros IS NULL) = (balance_currency IS NULL))
      ) WITH (fillfactor = 50);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE provider_health, upstream_pace');
  }
}
