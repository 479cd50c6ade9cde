import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';

/** What is known of the top-ups of a base package, by its provider's word, is asked for again after this. */
export const TOPUP_FITS_FRESH_MS = 86_400_000;

/** Which live top-ups fit which live base package, where the provider says so. */
@Injectable()
export class TopupFits {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Ids of the top-ups that fit eSIMs of the package, as far as they are known: none before the provider was asked.
   * Null for a package whose provider does not say, so that top-ups are matched by the places they cover.
   */
  async find(baseId: string, manager: EntityManager = this.manager): Promise<ReadonlySet<string> | null> {
    const { rows } = await sql<{ ids: string[] }>(
      manager,
      `SELECT ARRAY (SELECT f.topup_id FROM topup_fits f WHERE f.base_id = s.package_id) AS ids
       FROM package_sources s WHERE s.package_id = $1 AND s.fits = 'list'`,
      [baseId],
    );
    return rows[0] ? new Set(rows[0].ids) : null;
  }

  /** Has the provider asked soon where nothing is known of this package, or nothing new. Nobody waits for it. */
  async want(baseId: string): Promise<void> {
    await sql(
      this.manager,
      `UPDATE package_sources SET topups_wanted_at = now()
       WHERE package_id = $1 AND fits = 'list'
         AND (topups_asked_at IS NULL OR topups_asked_at < now() - $2 * interval '1 millisecond')
         AND (topups_wanted_at IS NULL OR topups_wanted_at <= topups_asked_at)`,
      [baseId, TOPUP_FITS_FRESH_MS],
    );
  }
}
