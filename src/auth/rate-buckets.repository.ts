import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';

/**
 * Full for ten minutes, which is longer than any statement may run (D43). A concurrent charge therefore sees the bucket
 * as full by its own clock, however long it has waited. A `tat` in the future counts as empty (D21), and the bucket
 * stays.
 */
const IS_LONG_FULL = `tat < (extract(epoch FROM statement_timestamp()) * 1000000)::bigint - 600000000`;

export interface BucketPage {
  /** Number of buckets read. */
  readonly read: number;
  readonly last: string | null;
  /** Keys of buckets that have been full for a long time. */
  readonly full: readonly string[];
}

/** Purges `rate_buckets` in PostgreSQL; in Redis every bucket expires on its own. */
@Injectable()
export class RateBucketsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * The first `limit` buckets after the key `after`, by primary key: an index on `tat` would cost every call a write.
   */
  async readPage(after: string, limit: number): Promise<BucketPage> {
    const { rows } = await sql<{ read: number; last: string | null; full: string[] }>(
      this.manager,
      `SELECT count(*)::int AS read, max(key) AS last,
              coalesce(array_agg(key) FILTER (WHERE ${IS_LONG_FULL}), '{}') AS full
       FROM (SELECT key, tat FROM rate_buckets WHERE key > $1 ORDER BY key LIMIT $2) AS page`,
      [after, limit],
    );
    return rows[0]!;
  }

  /** Deletes the given buckets that are still full and that no call is charging, and returns their number. */
  async deleteFull(keys: readonly string[]): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM rate_buckets WHERE key = ANY (ARRAY(
         SELECT key FROM rate_buckets WHERE key = ANY ($1) AND ${IS_LONG_FULL} FOR UPDATE SKIP LOCKED))`,
      [keys],
    );
    return affected;
  }
}
