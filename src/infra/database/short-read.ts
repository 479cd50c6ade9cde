import type { EntityManager } from 'typeorm';
import { sql } from './sql.js';

/** What an index answers takes milliseconds; what takes longer than this is not worth a scraper's wait. */
const SHORT_LIMIT = '3s';

/**
 * Runs `read` in a transaction of its own whose statements PostgreSQL cancels after `limit`: for what only operators
 * look at, which must not hold a connection for long.
 * @throws Error when it takes longer
 */
export async function readWithin<T>(
  manager: EntityManager,
  read: (manager: EntityManager) => Promise<T>,
  limit: string = SHORT_LIMIT,
): Promise<T> {
  return manager.transaction(async (inner) => {
    await sql(inner, `SELECT set_config('statement_timeout', $1, true)`, [limit]);
    return read(inner);
  });
}

/** The `seconds` of the one row that `text` reads; 0 when it reads none: nothing waits. */
export async function readAgeSeconds(manager: EntityManager, text: string): Promise<number> {
  return readWithin(manager, async (inner) => {
    const { rows } = await sql<{ seconds: number }>(inner, text);
    return Math.max(0, rows[0]?.seconds ?? 0);
  });
}
