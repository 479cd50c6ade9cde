import { Client } from 'pg';
import { eventually, type TestDatabase } from '../harness/index.js';

/** Locks a table, so that a process stops exactly where it wants to read or write it. */
export class TableLock {
  private constructor(
    private readonly client: Client,
    private readonly table: string,
  ) {}

  static async take({ url }: TestDatabase, table: string): Promise<TableLock> {
    const client = new Client({ connectionString: url });
    // A failed test leaves it open, and the drop of its database ends it.
    client.on('error', () => undefined);
    await client.connect();
    await client.query('BEGIN');
    await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return new TableLock(client, table);
  }

  /** Waits until `count` sessions wait for the table. */
  async waiters(count: number): Promise<void> {
    await eventually(`${count} wait for ${this.table}`, async () => {
      const { rows } = await this.client.query<{ n: number }>(
        `SELECT count(DISTINCT pid)::int AS n FROM pg_locks WHERE relation = $1::regclass AND NOT granted`,
        [this.table],
      );
      return rows[0]!.n >= count;
    });
  }

  /** Waits until a session waits with a query like `pattern`. */
  async waitsFor(pattern: string): Promise<void> {
    await eventually(`a query like ${pattern} waits for ${this.table}`, async () => {
      // A transaction sees a snapshot of the statistics unless it clears it.
      await this.client.query('SELECT pg_stat_clear_snapshot()');
      const { rowCount } = await this.client.query(
        `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE relation = $1::regclass AND NOT granted AND query LIKE $2`,
        [this.table, pattern],
      );
      return rowCount! > 0;
    });
  }

  async release(): Promise<void> {
    await this.client.end();
  }
}
