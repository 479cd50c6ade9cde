import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';

/** Deletes what the live catalogue was and how it came in, past its retention (D44); answers how many rows. */
@Injectable()
export class CatalogHistoryRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * The last row of a package stays: the next price is compared with it. The oldest first, by the index of their age, and
   * each asks for the last of its package by itself: as a join the whole table would be read and sorted at every step.
   * Besides what it takes, a step looks at the prices that stay for good: one of each package, at most.
   */
  async purgePrices(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM package_price_history WHERE ctid = ANY (ARRAY(
         SELECT h.ctid FROM package_price_history h
         WHERE h.changed_at < now() - $1::int * interval '1 day'
           AND h.changed_at < (SELECT max(n.changed_at) FROM package_price_history n
                               WHERE n.package_id = h.package_id)
         ORDER BY h.changed_at LIMIT $2 FOR UPDATE OF h SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }

  async purgeSyncs(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM catalog_syncs WHERE id = ANY (ARRAY(
         SELECT id FROM catalog_syncs
         WHERE ended_at < now() - $1::int * interval '1 day' AND requested_at < now() - $1::int * interval '1 day'
         LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }
}
