import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';

/** SQL that writes down, row by row, what one row of the endpoint has decided (D32, DELETE). */
@Injectable()
export class BacklogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * Discards up to `limit` deliveries that are given up; answers how many. The lease of an attempt under way is left,
   * so that its outcome is still logged, and counted when it is a 2xx.
   */
  async writeDiscards(limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `UPDATE webhook_deliveries SET status = 'discarded', next_attempt_at = NULL
       WHERE id = ANY (ARRAY(
         SELECT given_up.id
         FROM webhook_endpoints w
         CROSS JOIN LATERAL (
           SELECT d.id FROM webhook_deliveries d
           WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before
           LIMIT $1 FOR UPDATE SKIP LOCKED
         ) AS given_up
         WHERE w.discard_before IS NOT NULL LIMIT $1))`,
      [limit],
    );
    return affected;
  }

  /** Forgets decisions that are carried out; an hour is longer than any transaction that could still owe something. */
  async forgetOldDiscards(): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_endpoints w SET discard_before = NULL
       WHERE w.deleted_at IS NULL AND w.discard_before < now() - interval '1 hour'
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before)`,
    );
  }
}
