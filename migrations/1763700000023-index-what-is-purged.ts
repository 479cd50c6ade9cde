import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the purges look for, by age (D44). */
export class IndexWhatIsPurged1763700000023 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY runs in no transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // It waits for transactions that are under way, and holds nobody up meanwhile.
    await runner.query('SET lock_timeout = 0');
    for (const { name, on } of INDEXES) {
      // One that a broken attempt left behind is invalid, and would count as there.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
    }
    await runner.query('RESET lock_timeout');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
  }
}

const INDEXES = [
  { name: 'orders_sandbox_age', on: `orders (created_at) WHERE mode = 'sandbox'` },
  { name: 'package_price_history_age', on: 'package_price_history (changed_at)' },
  { name: 'webhook_replays_ended', on: 'webhook_replays (ended_at) WHERE ended_at IS NOT NULL' },
  { name: 'webhook_endpoints_deleted', on: 'webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL' },
];
