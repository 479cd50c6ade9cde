import type { MigrationInterface, QueryRunner } from 'typeorm';

const COUNTED = [
  ...['status', 'profile_status', 'package_id', 'iccid', 'apn', 'unlimited', 'total_bytes', 'used_bytes'],
  ...['usage_as_of', 'usage_source', 'thresholds_crossed', 'install_by', 'activated_at', 'expires_at'],
];
const ADDED = ['msisdn', 'pooled', 'plans'];

/** Stores the plans of an eSIM's last reading, its phone number, and the term of installation that was sold (D47). */
export class ListEsimPlans1763700000070 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE orders ADD COLUMN install_within_days int;
      ALTER TABLE esims ADD COLUMN msisdn text COLLATE "C", ADD COLUMN pooled boolean NOT NULL DEFAULT true,
        ADD COLUMN plans jsonb NOT NULL DEFAULT '[]'`);
    await runner.query(triggerOver([...COUNTED, ...ADDED]));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(triggerOver(COUNTED));
    await runner.query(`
      ALTER TABLE esims DROP COLUMN msisdn, DROP COLUMN pooled, DROP COLUMN plans;
      ALTER TABLE orders DROP COLUMN install_within_days`);
  }
}

/** Counts an eSIM's version when one of the columns changes (D48). */
function triggerOver(columns: readonly string[]): string {
  const of = (row: 'OLD' | 'NEW') => columns.map((column) => `${row}.${column}`).join(', ');
  return `
    CREATE OR REPLACE TRIGGER esims_version BEFORE UPDATE ON esims FOR EACH ROW
    WHEN ((${of('OLD')}) IS DISTINCT FROM (${of('NEW')})) EXECUTE FUNCTION count_version()`;
}
