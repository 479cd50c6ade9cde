import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The order whose events are listed (`subject` of the feed, D39): every event names its order, so those of an eSIM or a
 * top-up are among the few of its order. `src/events/event-subjects.repository.ts` repeats the expression.
 */
const ON = `(partner_id, substring(body FROM '"order_id":"([^"]+)"'))`;

/** Finds the events of an order in each day, without a column that every event would have to be given again. */
export class IndexEventsOfOrders1763700000034 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY runs in no transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX IF NOT EXISTS events_of_order ON ONLY events ${ON}`);
    for (const table of ['events_sandbox', 'events_live']) {
      // From here on a day that is made has the index; those that are there get theirs one by one.
      await runner.query(`
        CREATE INDEX IF NOT EXISTS ${table}_of_order ON ONLY ${table} ${ON};
        ALTER INDEX events_of_order ATTACH PARTITION ${table}_of_order`);
      await this.indexDays(runner, table);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX IF EXISTS events_of_order');
  }

  /** The parent's index is whole, and valid, when the last day's is attached. */
  private async indexDays(runner: QueryRunner, table: string): Promise<void> {
    const days = (await runner.query(
      `SELECT i.inhrelid::regclass::text AS name FROM pg_inherits i
       WHERE i.inhparent = $1::regclass AND NOT EXISTS (
         SELECT 1 FROM pg_index x JOIN pg_inherits a ON a.inhrelid = x.indexrelid
         WHERE x.indrelid = i.inhrelid AND a.inhparent = $2::regclass)`,
      [table, `${table}_of_order`],
    )) as { name: string }[];
    // It waits for transactions that are under way, and holds nobody up meanwhile.
    await runner.query('SET lock_timeout = 0');
    for (const { name } of days) {
      // One that a broken attempt left behind is invalid, and would count as there.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}_of_order`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name}_of_order ON ${name} ${ON}`);
      await runner.query(`ALTER INDEX ${table}_of_order ATTACH PARTITION ${name}_of_order`);
    }
    await runner.query('RESET lock_timeout');
  }
}
