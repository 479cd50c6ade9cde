import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Orders and eSIMs (D19, D22, D23), and the records of the built-in sandbox provider (D26). */
export class CreateOrdersAndEsims1763700000004 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE orders (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        status text COLLATE "C" NOT NULL CHECK (status IN
          ('pending', 'processing', 'issued', 'partially_issued', 'failed', 'canceling', 'canceled')),
        package_id text COLLATE "C" NOT NULL,
        quantity int NOT NULL CHECK (quantity BETWEEN 1 AND 20),
        quantity_issued int NOT NULL DEFAULT 0,
        quantity_failed int NOT NULL DEFAULT 0,
        unit_price_amount bigint NOT NULL,
        refunded_amount bigint NOT NULL DEFAULT 0,
        currency text COLLATE "C" NOT NULL,
        reference text COLLATE "C",
        metadata jsonb NOT NULL DEFAULT '{}',
        provider text COLLATE "C" NOT NULL,
        -- D19: fixed before the first upstream call, used by every one
        provider_reference text COLLATE "C" NOT NULL CONSTRAINT orders_provider_reference UNIQUE,
        failure_code text COLLATE "C",
        failure_reason text COLLATE "C",
        cancel_failure_code text COLLATE "C",
        cancel_failure_reason text COLLATE "C",
        -- the status that a refused cancellation returns to
        status_before_cancel text COLLATE "C",
        upstream_attempts int NOT NULL DEFAULT 0,
        next_attempt_at timestamptz,
        lease_until timestamptz,
        -- fencing token: a worker whose lease lapsed must not write
        fence bigint NOT NULL DEFAULT 0,
        accepted_request_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        issued_at timestamptz,
        failed_at timestamptz,
        CHECK (quantity_issued >= 0 AND quantity_failed >= 0 AND quantity_issued + quantity_failed <= quantity),
        CHECK (refunded_amount >= 0 AND refunded_amount <= unit_price_amount * quantity)
      ) WITH (fillfactor = 80);
      CREATE INDEX orders_list ON orders (partner_id, mode, created_at DESC, id DESC);
      CREATE UNIQUE INDEX orders_reference ON orders (partner_id, mode, reference) WHERE reference IS NOT NULL;
      CREATE INDEX orders_due ON orders (partner_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
      CREATE INDEX orders_due_anywhere ON orders (next_attempt_at) WHERE next_attempt_at IS NOT NULL;

      CREATE TABLE esims (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        order_id text COLLATE "C" NOT NULL REFERENCES orders (id),
        package_id text COLLATE "C" NOT NULL,
        -- D23: text, never unique: a wholesaler may reuse a freed ICCID
        iccid text COLLATE "C" NOT NULL CHECK (iccid ~ '^[0-9]{18,20}$'),
        status text COLLATE "C" NOT NULL CHECK (status IN ('issued', 'active', 'depleted', 'expired', 'suspended', 'canceled')),
        profile_status text COLLATE "C" NOT NULL CHECK (profile_status IN
          ('released', 'downloaded', 'installed', 'enabled', 'disabled', 'deleted', 'unknown')),
        apn text COLLATE "C",
        -- encrypted JSON: smdp_address, matching_id, confirmation_code (D25, D37)
        install_secrets text COLLATE "C" NOT NULL,
        unlimited boolean NOT NULL,
        total_bytes bigint,
        used_bytes bigint NOT NULL DEFAULT 0 CHECK (used_bytes >= 0),
        usage_as_of timestamptz NOT NULL DEFAULT now(),
        usage_source text COLLATE "C" NOT NULL CHECK (usage_source IN ('callback', 'poll', 'simulated')),
        -- D24: levels announced in this data cycle
        thresholds_crossed smallint[] NOT NULL DEFAULT '{}',
        validity_days int NOT NULL,
        activation_policy text COLLATE "C" NOT NULL,
        install_by timestamptz,
        activated_at timestamptz,
        expires_at timestamptz,
        provider text COLLATE "C" NOT NULL,
        provider_esim_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CHECK (unlimited = (total_bytes IS NULL)),
        CONSTRAINT esims_provider_esim UNIQUE (provider, provider_esim_id)
      ) WITH (fillfactor = 80);
      CREATE INDEX esims_list ON esims (partner_id, mode, created_at DESC, id DESC);
      CREATE INDEX esims_by_order ON esims (order_id);
      CREATE INDEX esims_by_iccid ON esims (partner_id, mode, iccid);
      CREATE INDEX esims_expiring ON esims (coalesce(expires_at, install_by))
        WHERE status IN ('issued', 'active', 'depleted');

      -- What the built-in sandbox upstream remembers. Nothing but src/providers/sandbox reads or writes it.
      CREATE TABLE sandbox_upstream_orders (
        reference text COLLATE "C" PRIMARY KEY,
        package_id text COLLATE "C" NOT NULL,
        quantity int NOT NULL,
        outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('provisioned', 'rejected')),
        rejection_code text COLLATE "C",
        -- sealed: matching ids are secrets here too (D25)
        profiles text COLLATE "C" NOT NULL,
        ready_at timestamptz NOT NULL,
        canceled_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now()
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE sandbox_upstream_orders, esims, orders');
  }
}
