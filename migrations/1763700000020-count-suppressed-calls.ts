import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Number of refused calls that a row of the call log summarizes (D45). */
export class CountSuppressedCalls1763700000020 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      SET LOCAL lock_timeout = '5s';
      ALTER TABLE api_calls ADD COLUMN suppressed integer;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_calls DROP COLUMN suppressed');
  }
}
