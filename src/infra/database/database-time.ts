import type { Tx } from './transactions.js';
import { sql } from './sql.js';

/** The database's time of this moment, the clock of due times, leases and expiry (D40). */
export async function databaseNow(tx: Tx): Promise<Date> {
  const { rows } = await sql<{ now: Date }>(tx.manager, 'SELECT clock_timestamp() AS now');
  return rows[0]!.now;
}
