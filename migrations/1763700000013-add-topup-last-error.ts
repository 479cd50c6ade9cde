import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What support needs to settle top-ups whose upstream says nothing (D22). */
export class AddTopupLastError1763700000013 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- class of what the last look at the upstream went wrong with
      ALTER TABLE topups ADD COLUMN last_error text COLLATE "C";
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE topups DROP COLUMN last_error;`);
  }
}
