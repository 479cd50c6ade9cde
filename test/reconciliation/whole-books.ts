import { DEFAULT_RETENTION } from '../../src/config/index.js';
import { type BookCheck, WALKED_TABLES } from '../../src/reconciliation/index.js';
import type { TestDatabase } from '../harness/index.js';

const MORE_THAN_ANY_TEST_HAS = 1_000_000;

interface RangeRow {
  last: string | null;
  first_end_at?: Date | null;
  last_end_at?: Date | null;
}

/** Rows of the whole database that break an invariant of `npm run reconcile`, found with the same statements. */
export async function breachesOf(
  pool: TestDatabase['pool'],
  { walks }: BookCheck,
  needsReviewAfterMs: number,
): Promise<unknown[]> {
  const breaches: unknown[] = [];
  for (const { table, query, parameters } of walks) {
    const { first, nextRange } = WALKED_TABLES[table];
    const { rows } = await pool.query<RangeRow>(nextRange, [first, MORE_THAN_ANY_TEST_HAS]);
    const { last, first_end_at: firstEndAt = null, last_end_at: lastEndAt = null } = rows[0]!;
    if (last === null) continue;
    const settings = { needsReviewAfterMs, retention: DEFAULT_RETENTION };
    const range = { after: first, upTo: last, firstEndAt, lastEndAt };
    const values = [first, last, ...(parameters?.(settings, range) ?? [])];
    breaches.push(...(await pool.query(query, values)).rows);
  }
  return breaches;
}
