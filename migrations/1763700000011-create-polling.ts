import type { MigrationInterface, QueryRunner } from 'typeorm';

const CAN_CHANGE = `status IN ('issued', 'active', 'depleted', 'suspended')`;

/** Polls of live eSIMs: due time, lease, and newest reading (D24, D40). */
export class CreatePolling1763700000011 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE esims
        -- null: nobody is asked (Sandbox)
        ADD COLUMN next_poll_at timestamptz,
        -- a callback asks for a look from this time on; null: none does
        ADD COLUMN poll_hint_at timestamptz,
        -- the newest claim, hence when its upstream was asked last
        ADD COLUMN polled_at timestamptz,
        ADD COLUMN poll_lease_until timestamptz,
        -- fencing token: a worker whose lease lapsed must not write
        ADD COLUMN poll_fence bigint NOT NULL DEFAULT 0,
        ADD COLUMN read_at timestamptz,
        ADD COLUMN topped_up_at timestamptz;
      -- the day after the upgrade, spread
      UPDATE esims SET next_poll_at = now() + random() * interval '1 day'
        WHERE mode = 'live' AND ${CAN_CHANGE};
      CREATE INDEX esims_poll_due ON esims (provider, next_poll_at)
        WHERE next_poll_at IS NOT NULL AND ${CAN_CHANGE};
      CREATE INDEX esims_poll_hints ON esims (provider, poll_hint_at)
        WHERE poll_hint_at IS NOT NULL AND ${CAN_CHANGE};
      DROP INDEX esims_expiring;
      CREATE INDEX esims_expiring ON esims (coalesce(expires_at, install_by)) WHERE ${CAN_CHANGE};
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX esims_expiring;
      CREATE INDEX esims_expiring ON esims (coalesce(expires_at, install_by))
        WHERE status IN ('issued', 'active', 'depleted');
      DROP INDEX esims_poll_hints, esims_poll_due;
      ALTER TABLE esims
        DROP COLUMN next_poll_at,
        DROP COLUMN poll_hint_at,
        DROP COLUMN polled_at,
        DROP COLUMN poll_lease_until,
        DROP COLUMN poll_fence,
        DROP COLUMN read_at,
        DROP COLUMN topped_up_at;
    `);
  }
}
