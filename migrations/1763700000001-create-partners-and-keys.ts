import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Partners, their API keys (D12 to D15), the rate-limit buckets (D21) and the audit log. */
export class CreatePartnersAndKeys1763700000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE partners (
        id text COLLATE "C" PRIMARY KEY,
        name text COLLATE "C" NOT NULL,
        email text COLLATE "C",
        status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX partners_list ON partners (created_at DESC, id DESC);

      CREATE TABLE api_keys (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        name text COLLATE "C",
        hash bytea NOT NULL CONSTRAINT api_keys_hash UNIQUE,
        last4 text COLLATE "C" NOT NULL,
        allowed_cidrs cidr[],
        expires_at timestamptz,
        revoked_at timestamptz,
        replaced_by text COLLATE "C" REFERENCES api_keys (id),
        last_used_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX api_keys_list ON api_keys (partner_id, created_at DESC, id DESC);

      -- Losing the buckets in a crash only refills them, so they are not worth a write-ahead log (D21).
      CREATE UNLOGGED TABLE rate_buckets (
        key text COLLATE "C" PRIMARY KEY,
        tat bigint NOT NULL,
        t bigint NOT NULL,
        burst int NOT NULL,
        granted int NOT NULL
      ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

      CREATE TABLE audit_log (
        id text COLLATE "C" PRIMARY KEY,
        actor text COLLATE "C" NOT NULL,
        portal_user text COLLATE "C",
        action text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C",
        subject_id text COLLATE "C" NOT NULL,
        details jsonb NOT NULL DEFAULT '{}',
        request_id text COLLATE "C",
        created_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX audit_log_list ON audit_log (created_at DESC, id DESC);
      CREATE INDEX audit_log_by_partner ON audit_log (partner_id, created_at DESC, id DESC);
      CREATE INDEX audit_log_by_subject ON audit_log (subject_id, created_at DESC, id DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE audit_log, rate_buckets, api_keys, partners');
  }
}
