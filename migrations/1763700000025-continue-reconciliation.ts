import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

/**
 * Lets another worker continue a reconciliation run (D27): stores its owner's fence and the progress of its parts.
 * Indexes refunds by order and by top-up, because the checks look up an order's ledger transactions by index.
 */
export class ContinueReconciliation1763700000025 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await buildIndexes(runner, INDEXES);
    // Each query text runs in its own transaction. The migration is recorded in another one, so it runs again after a
    // crash in between.
    await runner.query(`
      ALTER TABLE reconciliation_runs
        -- grows with every worker that takes the run: one whose lease lapsed must not write
        ADD COLUMN IF NOT EXISTS fence bigint NOT NULL DEFAULT 0,
        -- workers that took it since it last came further
        ADD COLUMN IF NOT EXISTS attempts int NOT NULL DEFAULT 0;
      CREATE TABLE IF NOT EXISTS reconciliation_cursors (
        run_id bigint NOT NULL REFERENCES reconciliation_runs (id) ON DELETE CASCADE,
        -- a check over one table, or the orders or top-ups of one provider
        part text COLLATE "C" NOT NULL,
        -- the last key that was read; null: the part is done
        cursor text COLLATE "C",
        rows_read bigint NOT NULL DEFAULT 0,
        differences int NOT NULL DEFAULT 0,
        PRIMARY KEY (run_id, part)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
    await runner.query('DROP TABLE reconciliation_cursors');
    await runner.query('ALTER TABLE reconciliation_runs DROP COLUMN fence, DROP COLUMN attempts');
  }
}

/** Charges already have an index; refunds are few. */
const INDEXES = [
  {
    name: 'ledger_transactions_order_refunds',
    on: `ledger_transactions (order_id) WHERE type = 'refund' AND order_id IS NOT NULL`,
  },
  {
    name: 'ledger_transactions_topup_refunds',
    on: `ledger_transactions (topup_id) WHERE type = 'refund' AND topup_id IS NOT NULL`,
  },
];
