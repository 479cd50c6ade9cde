import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

/** A partner's replays of the last hour, for the portal's step-up (D50). */
export class IndexRecentReplays1763700000038 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
  }
}

const INDEXES = [{ name: 'webhook_replays_recent', on: 'webhook_replays (partner_id, created_at)' }];
