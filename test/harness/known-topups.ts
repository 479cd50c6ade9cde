import type { TestDatabase } from './database.js';
import { eventually } from './eventually.js';

/**
 * Waits until the worker has queried the top-ups of every package on sale, after which it makes no more such queries.
 */
export async function topupsKnown({ pool }: TestDatabase): Promise<void> {
  await eventually('the wholesalers have said which top-ups fit', async () => {
    // A failed query is repeated after ten minutes. Repeat it at once here.
    await pool.query(
      `UPDATE package_sources SET topups_not_before = NULL
       WHERE topups_asked_at IS NULL AND topups_not_before > now() + interval '5 minutes'`,
    );
    const { rows } = await pool.query<{ unknown: number }>(
      `SELECT count(*)::int AS unknown FROM package_sources s JOIN packages p ON p.mode = 'live' AND p.id = s.package_id
       WHERE s.fits = 'list' AND s.kind = 'base' AND p.available AND p.topup_supported AND s.topups_asked_at IS NULL`,
    );
    return rows[0]!.unknown === 0;
  });
}
