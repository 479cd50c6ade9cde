import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Columns of the index that finds events by order (the feed's `subject`, D39). Every event names its order, so events
 * of an eSIM or top-up are among the few of its order. `src/events/event-subjects.repository.ts` repeats the
 * expression.
 */
const ON = `(partner_id, substring(body FROM '"order_id":"([^"]+)"'))`;

/** Finds an order's events in each day's partition, without a new column in every event. */
export class IndexEventsOfOrders1763700000034 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX IF NOT EXISTS events_of_order ON ONLY events ${ON}`);
    for (const table of ['events_sandbox', 'events_live']) {
      // New days get the index from here on; existing days get theirs one by one.
      await runner.query(`
        CREATE INDEX IF NOT EXISTS ${table}_of_order ON ONLY ${table} ${ON};
        ALTER INDEX events_of_order ATTACH PARTITION ${table}_of_order`);
      await this.indexDays(runner, table);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX IF EXISTS events_of_order');
  }

  /** The parent's index becomes valid when the last day's index is attached. */
  private async indexDays(runner: QueryRunner, table: string): Promise<void> {
    const days = (await runner.query(
      `SELECT i.inhrelid::regclass::text AS name FROM pg_inherits i
       WHERE i.inhparent = $1::regclass AND NOT EXISTS (
         SELECT 1 FROM pg_index x JOIN pg_inherits a ON a.inhrelid = x.indexrelid
         WHERE x.indrelid = i.inhrelid AND a.inhparent = $2::regclass)`,
      [table, `${table}_of_order`],
    )) as { name: string }[];
    // CREATE INDEX CONCURRENTLY waits for running transactions without blocking others.
    await runner.query('SET lock_timeout = 0');
    for (const { name } of days) {
      // An index left by an interrupted attempt is invalid, but would count as existing.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}_of_order`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name}_of_order ON ${name} ${ON}`);
      await runner.query(`ALTER INDEX ${table}_of_order ATTACH PARTITION ${name}_of_order`);
    }
    await runner.query('RESET lock_timeout');
  }
}
