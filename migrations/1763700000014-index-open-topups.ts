import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Indexes top-ups whose provider does not respond (D22). A separate migration: if the new column were added in the same
 * transaction, reads of top-ups would be blocked while the index is built.
 */
export class IndexOpenTopups1763700000014 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX topups_open ON topups (created_at, id) WHERE status = 'processing';`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX topups_open;`);
  }
}
