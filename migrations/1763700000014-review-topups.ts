import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What support needs to settle top-ups whose upstream says nothing (D22). */
export class ReviewTopups1763700000014 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- class of what the last look at the upstream went wrong with
      ALTER TABLE topups ADD COLUMN last_error text;
      CREATE INDEX topups_open ON topups (created_at, id) WHERE status = 'processing';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX topups_open;
      ALTER TABLE topups DROP COLUMN last_error;
    `);
  }
}
