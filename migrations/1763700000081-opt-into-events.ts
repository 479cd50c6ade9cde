import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes, type NewIndex } from './build-indexes.js';

const INDEXES: readonly NewIndex[] = [
  {
    name: 'esims_expiry_warning',
    on: 'esims (mode, expiry_warning_at, id) WHERE expiry_warning_at IS NOT NULL',
  },
  { name: 'catalog_syncs_unannounced', on: 'catalog_syncs (ended_at) WHERE announced_to IS NOT NULL' },
];

/**
 * Usage levels of webhook endpoints, when an eSIM's next `esim.expiring` is due, and which part of the catalog's log a
 * synchronization announces to which partners (D58).
 */
export class OptIntoEvents1763700000081 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints ADD COLUMN IF NOT EXISTS usage_levels smallint[]');
    await runner.query('ALTER TABLE esims ADD COLUMN IF NOT EXISTS expiry_warning_at timestamptz');
    await runner.query(`
      ALTER TABLE catalog_syncs ADD COLUMN IF NOT EXISTS changes_after bigint,
        ADD COLUMN IF NOT EXISTS changes_up_to bigint,
        -- the last partner that has the event, or '' for none; null if nothing is to be announced
        ADD COLUMN IF NOT EXISTS announced_to text COLLATE "C"`);
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
    await runner.query(`
      ALTER TABLE catalog_syncs DROP COLUMN IF EXISTS changes_after, DROP COLUMN IF EXISTS changes_up_to,
        DROP COLUMN IF EXISTS announced_to`);
    await runner.query('ALTER TABLE esims DROP COLUMN IF EXISTS expiry_warning_at');
    await runner.query('ALTER TABLE webhook_endpoints DROP COLUMN IF EXISTS usage_levels');
  }
}
