import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Packages of both modes; `catalog_versions` increases with every change and is the source of ETags. */
export class CreateCatalog1763700000003 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE packages (
        id text COLLATE "C" NOT NULL,
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        title text COLLATE "C" NOT NULL,
        type text COLLATE "C" NOT NULL CHECK (type IN ('country', 'regional', 'global')),
        region text COLLATE "C",
        coverage text[] COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('base', 'topup')),
        data_bytes bigint CHECK (data_bytes > 0),
        unlimited boolean NOT NULL,
        voice_minutes int,
        sms_count int,
        validity_days int NOT NULL CHECK (validity_days > 0),
        activation_policy text COLLATE "C" NOT NULL CHECK (activation_policy IN ('on_install', 'on_first_use', 'on_purchase')),
        topup_supported boolean NOT NULL,
        networks jsonb NOT NULL,
        price_amount bigint NOT NULL CHECK (price_amount >= 0),
        currency text COLLATE "C" NOT NULL,
        retail_amount bigint,
        available boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (mode, id),
        CHECK (NOT (unlimited AND data_bytes IS NOT NULL))
      );

      CREATE TABLE catalog_versions (
        mode text COLLATE "C" PRIMARY KEY,
        version bigint NOT NULL
      );
      INSERT INTO catalog_versions (mode, version) VALUES ('sandbox', 0), ('live', 0);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE catalog_versions, packages');
  }
}
