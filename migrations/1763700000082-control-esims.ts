import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

const COUNTED = [
  ...['status', 'profile_status', 'package_id', 'iccid', 'apn', 'unlimited', 'total_bytes', 'used_bytes'],
  ...['usage_as_of', 'usage_source', 'thresholds_crossed', 'install_by', 'activated_at', 'expires_at'],
  ...['msisdn', 'pooled', 'plans'],
];
const ADDED = ['label', 'metadata', 'pending_action', 'action_failure'];

/** Labels of eSIMs, the action that a partner has requested, and the replacement of an eSIM (D70). */
export class ControlEsims1763700000082 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE esims
        ADD COLUMN IF NOT EXISTS label text COLLATE "C",
        ADD COLUMN IF NOT EXISTS metadata jsonb NOT NULL DEFAULT '{}',
        ADD COLUMN IF NOT EXISTS pending_action text COLLATE "C",
        ADD COLUMN IF NOT EXISTS action_reason text COLLATE "C",
        ADD COLUMN IF NOT EXISTS action_due_at timestamptz,
        ADD COLUMN IF NOT EXISTS action_sent_at timestamptz,
        ADD COLUMN IF NOT EXISTS action_fence bigint NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS action_failure jsonb,
        ADD COLUMN IF NOT EXISTS acted_at timestamptz,
        ADD COLUMN IF NOT EXISTS revoked_at timestamptz,
        ADD COLUMN IF NOT EXISTS replaced_by text COLLATE "C"`);
    await runner.query('ALTER TABLE orders ADD COLUMN IF NOT EXISTS replaces text COLLATE "C"');
    await runner.query(triggerOver([...COUNTED, ...ADDED]));
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
    await runner.query(triggerOver(COUNTED));
    await runner.query(`
      ALTER TABLE esims DROP COLUMN label, DROP COLUMN metadata, DROP COLUMN pending_action, DROP COLUMN action_reason,
        DROP COLUMN action_due_at, DROP COLUMN action_sent_at, DROP COLUMN action_fence, DROP COLUMN action_failure,
        DROP COLUMN acted_at, DROP COLUMN revoked_at, DROP COLUMN replaced_by;
      ALTER TABLE orders DROP COLUMN replaces`);
  }
}

const INDEXES = [
  { name: 'esims_action_due', on: 'esims (provider, action_due_at) WHERE action_due_at IS NOT NULL' },
  {
    name: 'esims_by_label',
    on: 'esims (partner_id, mode, label, created_at DESC, id DESC) WHERE label IS NOT NULL',
  },
];

/** Counts an eSIM's version when one of the columns changes (D48). */
function triggerOver(columns: readonly string[]): string {
  const of = (row: 'OLD' | 'NEW') => columns.map((column) => `${row}.${column}`).join(', ');
  return `
    CREATE OR REPLACE TRIGGER esims_version BEFORE UPDATE ON esims FOR EACH ROW
    WHEN ((${of('OLD')}) IS DISTINCT FROM (${of('NEW')})) EXECUTE FUNCTION count_version()`;
}
