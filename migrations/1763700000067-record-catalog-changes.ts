import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The log of catalog changes. A position is taken under the row lock of `catalog_versions`, so commits keep its order. */
export class RecordCatalogChanges1763700000067 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE catalog_versions
        ADD COLUMN position bigint NOT NULL DEFAULT 0,
        -- changes up to this position may have been purged
        ADD COLUMN kept_after bigint NOT NULL DEFAULT 0;

      CREATE TABLE catalog_changes (
        mode text COLLATE "C" NOT NULL,
        position bigint NOT NULL,
        -- '~' for a new price list, which changes every package for its partner; sorts after every package id
        package_id text COLLATE "C" NOT NULL,
        partner_id text COLLATE "C",
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('added', 'changed', 'withdrawn')),
        changed text[] COLLATE "C" NOT NULL,
        at timestamptz NOT NULL,
        PRIMARY KEY (mode, position, package_id),
        CHECK ((package_id = '~') = (partner_id IS NOT NULL))
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE catalog_changes;
      ALTER TABLE catalog_versions DROP COLUMN position, DROP COLUMN kept_after;
    `);
  }
}
