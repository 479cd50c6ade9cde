import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Orders store the package terms with which they were accepted (D47), because the package may change or be withdrawn
 * before the order is issued.
 */
export class KeepWhatWasSold1763700000024 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE orders
        -- of each eSIM; null: unlimited
        ADD COLUMN data_bytes bigint CHECK (data_bytes > 0),
        ADD COLUMN validity_days int,
        ADD COLUMN activation_policy text COLLATE "C";
      UPDATE orders o
      SET data_bytes = p.data_bytes, validity_days = p.validity_days, activation_policy = p.activation_policy
      FROM packages p
      WHERE p.id = o.package_id AND p.mode = o.mode;
      ALTER TABLE orders
        ALTER COLUMN validity_days SET NOT NULL,
        ALTER COLUMN activation_policy SET NOT NULL;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE orders DROP COLUMN data_bytes, DROP COLUMN validity_days, DROP COLUMN activation_policy',
    );
  }
}
