import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The live catalog: package costs, partner prices, price history, and synchronization jobs. */
export class CreateWholesale1763700000010 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Live packages only, in millionths of the unit of currency: what margins are added to.
      ALTER TABLE packages ADD COLUMN cost_micros bigint CHECK (cost_micros >= 0);

      CREATE TABLE price_lists (
        partner_id text COLLATE "C" PRIMARY KEY REFERENCES partners (id),
        -- hundredths of a percent on top of the cost; null: the margin of the settings
        margin_bps int CHECK (margin_bps BETWEEN 0 AND 100000),
        -- { "pkg_...": { "amount": 450, "currency": "USD" } }: these packages have this price, whatever they cost
        prices jsonb NOT NULL DEFAULT '{}',
        version bigint NOT NULL,
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE SEQUENCE price_list_versions;

      CREATE TABLE package_price_history (
        package_id text COLLATE "C" NOT NULL,
        cost_micros bigint,
        price_amount bigint NOT NULL,
        currency text COLLATE "C" NOT NULL,
        available boolean NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX package_price_history_list ON package_price_history (package_id, changed_at DESC);

      CREATE TABLE catalog_syncs (
        id text COLLATE "C" PRIMARY KEY,
        status text COLLATE "C" NOT NULL CHECK (status IN ('requested', 'running', 'completed', 'failed')),
        requested_at timestamptz NOT NULL DEFAULT now(),
        started_at timestamptz,
        -- a worker that dies leaves it to another after this
        lease_until timestamptz,
        ended_at timestamptz,
        -- per provider: listed, changed, withdrawn, or the class of the error
        result jsonb NOT NULL DEFAULT '{}'
      );
      -- Asking while one waits already asks for the same.
      CREATE UNIQUE INDEX catalog_syncs_requested ON catalog_syncs (status) WHERE status = 'requested';
      CREATE INDEX catalog_syncs_list ON catalog_syncs (requested_at DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE catalog_syncs, package_price_history, price_lists;
      DROP SEQUENCE price_list_versions;
      ALTER TABLE packages DROP COLUMN cost_micros;
    `);
  }
}
