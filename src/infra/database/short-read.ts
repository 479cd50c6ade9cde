import type { EntityManager } from 'typeorm';
import type { DatabaseClient } from './database-client.js';
import { sql } from './sql.js';

/** An index lookup takes milliseconds; a slower query is not worth a scraper's wait. */
const SHORT_LIMIT_MS = 3_000;

/**
 * Runs `read` in its own transaction, whose statements PostgreSQL cancels after `limitMs`. The default suits operator
 * metrics, which must not hold a connection for long.
 * @throws Error when it takes longer
 */
export async function readWithin<T>(
  manager: EntityManager,
  read: (manager: EntityManager) => Promise<T>,
  limitMs: number = SHORT_LIMIT_MS,
): Promise<T> {
  return manager.transaction(async (inner) => {
    const client = (await inner.queryRunner!.connect()) as DatabaseClient;
    await sql(inner, `SELECT set_config('statement_timeout', $1, true)`, [String(limitMs)]);
    client.expectAnswersWithin(limitMs);
    try {
      return await read(inner);
    } finally {
      client.expectAnswersWithin(null);
    }
  });
}

/** The `seconds` of the one row that `text` selects; 0 without a row, because nothing waits. */
export async function readAgeSeconds(manager: EntityManager, text: string): Promise<number> {
  return readWithin(manager, async (inner) => {
    const { rows } = await sql<{ seconds: number }>(inner, text);
    return Math.max(0, rows[0]?.seconds ?? 0);
  });
}
