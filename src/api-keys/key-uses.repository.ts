import { Inject, Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { EDGE_POOL } from '../infra/database/index.js';

/**
 * Sorted, so that processes lock in one order (D40). The guard makes the write at most one a minute and key,
 * however many processes serve the key.
 */
const TOUCH = `
  UPDATE api_keys k SET last_used_at = now()
  FROM (SELECT id FROM api_keys
        WHERE id = ANY ($1::text[]) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
        ORDER BY id FOR NO KEY UPDATE) AS stale
  WHERE k.id = stale.id`;

/** When keys were last used, on the edge's pool: it belongs to every call (D38). */
@Injectable()
export class LastUsedRepository {
  constructor(@Inject(EDGE_POOL) private readonly pool: Pool) {}

  async touch(keyIds: readonly string[]): Promise<void> {
    await this.pool.query({ name: 'touch-keys', text: TOUCH, values: [keyIds] });
  }
}
