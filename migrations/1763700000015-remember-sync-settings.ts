import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The settings behind the live catalog, so that a change takes effect at once instead of an hour later. */
export class RememberSyncSettings1763700000015 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- digest of the settings that packages are made with, and since when the worker that had them was running
      ALTER TABLE catalog_syncs ADD COLUMN settings text COLLATE "C", ADD COLUMN worker_since timestamptz;
      -- how often it was taken up: only the worker that did so last may write
      ALTER TABLE catalog_syncs ADD COLUMN attempt int NOT NULL DEFAULT 0;
      CREATE INDEX catalog_syncs_begun ON catalog_syncs (started_at DESC) WHERE started_at IS NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX catalog_syncs_begun;
      ALTER TABLE catalog_syncs DROP COLUMN settings, DROP COLUMN worker_since, DROP COLUMN attempt;
    `);
  }
}
