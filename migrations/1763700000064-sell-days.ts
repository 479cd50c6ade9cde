import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds the number of days that a buyer chose (D60). Earlier purchases and eSIMs have fixed days. */
export class SellDays1763700000064 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE orders ADD COLUMN days int');
    await runner.query('ALTER TABLE topups ADD COLUMN days int');
    await runner.query('ALTER TABLE esims ADD COLUMN days int');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['esims', 'topups', 'orders'])
      await runner.query(`ALTER TABLE ${table} DROP COLUMN days`);
  }
}
