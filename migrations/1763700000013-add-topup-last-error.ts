import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lets support settle top-ups whose provider does not respond (D22). */
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
