import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

const INDEXES = [
  { name: 'alerts_open', on: 'alerts (created_at, id) WHERE resolved_at IS NULL' },
  { name: 'alerts_open_by_type', on: 'alerts (type, created_at, id) WHERE resolved_at IS NULL' },
  { name: 'alerts_resolved', on: 'alerts (created_at, id) WHERE resolved_at IS NOT NULL' },
];

/** When the cause of an alert ended, why a partner is suspended, and each partner's brand. */
export class ResolveAlerts1763700000087 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE alerts ADD COLUMN IF NOT EXISTS resolved_at timestamptz');
    await runner.query(`
      ALTER TABLE partners
        ADD COLUMN IF NOT EXISTS suspended_reason text COLLATE "C",
        ADD COLUMN IF NOT EXISTS brand jsonb NOT NULL DEFAULT '{}'`);
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
    await runner.query('ALTER TABLE partners DROP COLUMN suspended_reason, DROP COLUMN brand');
    await runner.query('ALTER TABLE alerts DROP COLUMN resolved_at');
  }
}
