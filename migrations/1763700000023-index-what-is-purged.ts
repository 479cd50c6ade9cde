import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

/** Indexes by age for the purges (D44). */
export class IndexWhatIsPurged1763700000023 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
  }
}

const INDEXES = [
  { name: 'orders_sandbox_age', on: `orders (created_at) WHERE mode = 'sandbox'` },
  { name: 'package_price_history_age', on: 'package_price_history (changed_at)' },
  { name: 'webhook_replays_ended', on: 'webhook_replays (ended_at) WHERE ended_at IS NOT NULL' },
  { name: 'webhook_endpoints_deleted', on: 'webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL' },
];
