import type { TestDatabase } from '../harness/index.js';

/** Columns that keep real time: an attempt in progress, and the start of a slow start. */
const REAL_TIME = ['started_at', 'slow_start_since'];
/** In lock order (D40), with the column that names the endpoint. */
const TABLES = {
  webhook_endpoints: 'id',
  webhook_deliveries: 'endpoint_id',
  webhook_attempts: 'endpoint_id',
};

/**
 * The clock of one endpoint. Due times and blocks are stored by the database's clock (D40). Moving all of them back
 * moves that clock forward, so a test covers the documented delays without waiting.
 */
export class EndpointClock {
  constructor(
    private readonly database: TestDatabase,
    private readonly endpointId: string,
  ) {}

  /** Simulates that `ms` milliseconds have passed. Call it while no row of the endpoint is being written. */
  async advance(ms: number): Promise<void> {
    const client = await this.database.pool.connect();
    try {
      await client.query('BEGIN');
      for (const [table, key] of Object.entries(TABLES)) {
        const columns = await this.timesOf(table);
        const moves = columns.map((name) => `${name} = ${name} - $2 * interval '1 millisecond'`);
        await client.query(`UPDATE ${table} SET ${moves.join(', ')} WHERE ${key} = $1`, [
          this.endpointId,
          ms,
        ]);
      }
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  /** Moves forward to `ms` milliseconds before `time`, an RFC 3339 text or milliseconds. Returns by how much. */
  async advanceTo(time: string | number | null, ms = 0): Promise<number> {
    const remaining = (typeof time === 'number' ? time : Date.parse(String(time))) - Date.now() - ms;
    if (remaining > 0) await this.advance(remaining);
    return Math.max(remaining, 0);
  }

  private async timesOf(table: string): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ column_name: string }>(
      `SELECT column_name FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name = $1 AND data_type = 'timestamp with time zone'
         AND column_name <> ALL ($2)`,
      [table, REAL_TIME],
    );
    return rows.map((row) => row.column_name);
  }
}
