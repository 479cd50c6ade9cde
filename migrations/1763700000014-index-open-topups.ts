import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Top-ups whose upstream says nothing (D22). A migration of its own: in one with the new column, nobody could even
 * read top-ups while the index is built.
 */
export class IndexOpenTopups1763700000014 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX topups_open ON topups (created_at, id) WHERE status = 'processing';`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX topups_open;`);
  }
}
