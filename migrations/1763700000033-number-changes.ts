import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Columns visible to partners, in the object itself or in an eSIM's usage. `updated_at` is excluded, because a worker's
 * polls change it too.
 */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  orders: [
    ...['status', 'package_id', 'quantity', 'quantity_issued', 'quantity_failed', 'unit_price_amount'],
    ...['refunded_amount', 'currency', 'reference', 'metadata', 'failure_code', 'failure_reason'],
    ...['cancel_failure_code', 'cancel_failure_reason', 'issued_at', 'failed_at'],
  ],
  esims: [
    ...['status', 'profile_status', 'package_id', 'iccid', 'apn', 'unlimited', 'total_bytes', 'used_bytes'],
    ...['usage_as_of', 'usage_source', 'thresholds_crossed', 'install_by', 'activated_at', 'expires_at'],
  ],
  topups: [
    ...['status', 'esim_id', 'iccid', 'package_id', 'price_amount', 'currency', 'data_added_bytes'],
    ...[
      'validity_added_days',
      'reference',
      'metadata',
      'failure_code',
      'failure_reason',
      'completed_at',
      'failed_at',
    ],
  ],
};

/**
 * Every change of an order, eSIM or top-up that is visible to partners raises its `version` by one (D48). A trigger
 * counts, so that no statement can forget to. Changes to a worker's internal columns do not fire it.
 */
export class NumberChanges1763700000033 implements MigrationInterface {
  /**
   * Each table in its own transaction: locking all three could deadlock with writers that lock them in another order.
   */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE OR REPLACE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.version := OLD.version + 1;
        RETURN NEW;
      END $$`);
    for (const [table, columns] of Object.entries(SHOWN)) {
      // A constant default rewrites no row.
      await runner.query(`
        ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS version int NOT NULL DEFAULT 1;
        CREATE OR REPLACE TRIGGER ${table}_version BEFORE UPDATE ON ${table} FOR EACH ROW
        WHEN ((${columnsOf('OLD', columns)}) IS DISTINCT FROM (${columnsOf('NEW', columns)}))
        EXECUTE FUNCTION count_version()`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of Object.keys(SHOWN)) {
      await runner.query(`
        DROP TRIGGER IF EXISTS ${table}_version ON ${table};
        ALTER TABLE ${table} DROP COLUMN IF EXISTS version`);
    }
    await runner.query('DROP FUNCTION IF EXISTS count_version()');
  }
}

function columnsOf(row: 'OLD' | 'NEW', columns: readonly string[]): string {
  return columns.map((column) => `${row}.${column}`).join(', ');
}
