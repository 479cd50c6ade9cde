import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';

/**
 * Full for ten minutes, which is longer than any statement may run (D43): whoever charges the bucket beside its deletion
 * has a clock at which it is full, however long the charge has waited. A bucket that a clock left in the future counts as
 * empty (D21), and stays.
 */
const IS_LONG_FULL = `tat < (extract(epoch FROM statement_timestamp()) * 1000000)::bigint - 600000000`;

export interface BucketPage {
  /** How many buckets were read. */
  readonly read: number;
  readonly last: string | null;
  /** Keys of those that have been full for long. */
  readonly full: readonly string[];
}

/** The purge of `rate_buckets` in PostgreSQL; in Redis every bucket expires by itself. */
@Injectable()
export class RateBucketsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** The first `limit` buckets behind the key `after`. By the primary key: an index on `tat` would cost every call a write. */
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

  /** Deletes those of the buckets that are still full and that no call is charging; answers how many. */
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
