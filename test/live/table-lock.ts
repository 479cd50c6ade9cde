import { Client } from 'pg';
import { eventually, type TestDatabase } from '../harness/index.js';

/** Holds a table, so that whoever wants to read or write it waits: a process stands still exactly there. */
export class TableLock {
  private constructor(
    private readonly client: Client,
    private readonly table: string,
  ) {}

  static async take({ url }: TestDatabase, table: string): Promise<TableLock> {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return new TableLock(client, table);
  }

  /** Until `count` sessions wait for the table. */
  async waiters(count: number): Promise<void> {
    await eventually(`${count} wait for ${this.table}`, async () => {
      const { rows } = await this.client.query<{ n: number }>(
        `SELECT count(DISTINCT pid)::int AS n FROM pg_locks WHERE relation = $1::regclass AND NOT granted`,
        [this.table],
      );
      return rows[0]!.n >= count;
    });
  }

  /** Until a session waits whose query is like `pattern`. */
  async waitsFor(pattern: string): Promise<void> {
    await eventually(`a query like ${pattern} waits for ${this.table}`, async () => {
      // What a transaction has seen of the others' activity it sees until its end.
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
