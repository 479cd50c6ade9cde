import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';

/** Deletes the live catalog's history and syncs past their retention (D44) and returns the number of rows. */
@Injectable()
export class CatalogHistoryRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Keeps the last row of each package, because the next price is compared with it. Deletes the oldest first through
   * the index on age, and looks up each package's last row separately: a join would read and sort the whole table at
   * every step. Besides the deleted rows, a step reads at most one permanent row per package.
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
