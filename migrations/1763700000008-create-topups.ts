import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Top-ups (D19, D23), and those recorded by the built-in sandbox provider (D26). */
export class CreateTopups1763700000008 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE topups (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        esim_id text COLLATE "C" NOT NULL REFERENCES esims (id),
        iccid text COLLATE "C" NOT NULL,
        package_id text COLLATE "C" NOT NULL,
        status text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
        price_amount bigint NOT NULL CHECK (price_amount >= 0),
        currency text COLLATE "C" NOT NULL,
        -- what the package adds, as it was when the top-up was accepted; null: days only
        data_added_bytes bigint CHECK (data_added_bytes > 0),
        validity_added_days int NOT NULL CHECK (validity_added_days >= 0),
        reference text COLLATE "C",
        metadata jsonb NOT NULL DEFAULT '{}',
        provider text COLLATE "C" NOT NULL,
        -- D19: fixed before the first upstream call, used by every one
        provider_reference text COLLATE "C" NOT NULL CONSTRAINT topups_provider_reference UNIQUE,
        upstream_package_id text COLLATE "C" NOT NULL,
        -- millionths of the currency's unit; null when nobody charges for it
        unit_cost_micros bigint CHECK (unit_cost_micros >= 0),
        unit_cost_currency text COLLATE "C",
        -- the last placement that may have taken effect upstream; null: none has ever left
        upstream_placed_at timestamptz,
        failure_code text COLLATE "C",
        failure_reason text COLLATE "C",
        attempts int NOT NULL DEFAULT 0,
        next_attempt_at timestamptz,
        lease_until timestamptz,
        -- fencing token: a worker whose lease lapsed must not write
        fence bigint NOT NULL DEFAULT 0,
        accepted_request_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        completed_at timestamptz,
        failed_at timestamptz,
        CHECK ((unit_cost_micros IS NULL) = (unit_cost_currency IS NULL)),
        CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
        CHECK ((status = 'failed') = (failed_at IS NOT NULL AND failure_code IS NOT NULL))
      ) WITH (fillfactor = 80);
      CREATE INDEX topups_list ON topups (partner_id, mode, created_at DESC, id DESC);
      CREATE INDEX topups_by_esim ON topups (esim_id, created_at DESC, id DESC);
      CREATE UNIQUE INDEX topups_reference ON topups (partner_id, mode, reference) WHERE reference IS NOT NULL;
      CREATE INDEX topups_due ON topups (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      CREATE INDEX topups_due_anywhere ON topups (next_attempt_at) WHERE next_attempt_at IS NOT NULL;

      -- Nothing but src/providers/sandbox reads or writes it.
      CREATE TABLE sandbox_upstream_topups (
        reference text COLLATE "C" PRIMARY KEY,
        provider_esim_id text COLLATE "C" NOT NULL,
        package_id text COLLATE "C" NOT NULL,
        rejection_code text COLLATE "C",
        created_at timestamptz NOT NULL DEFAULT now()
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE sandbox_upstream_topups, topups');
  }
}
