import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../../infra/database/index.js';

/** SQL that writes down, row by row, what one row of the endpoint has decided (D32, DELETE). */
@Injectable()
export class BacklogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Endpoints that owe something still and have given up what is older than some time. */
  async listGivingUp(): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>(
      this.manager,
      `SELECT w.id FROM webhook_endpoints w
       WHERE w.discard_before IS NOT NULL
         AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.status = 'pending')`,
    );
    return rows.map((row) => row.id);
  }

  /**
   * Discards up to `limit` deliveries that the endpoint has given up; answers how many. The lease of an attempt under
   * way is left, so that its outcome is still logged, and counted when it is a 2xx.
   */
  async writeDiscards(endpointId: string, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      // In the order of the index of what is pending: the table may hold millions that have ended.
      `UPDATE webhook_deliveries SET status = 'discarded', next_attempt_at = NULL
       WHERE id = ANY (ARRAY(
         SELECT d.id FROM webhook_deliveries d
         WHERE d.endpoint_id = $1 AND d.status = 'pending'
           AND d.created_at < (SELECT w.discard_before FROM webhook_endpoints w WHERE w.id = $1)
         ORDER BY d.next_attempt_at, d.id LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [endpointId, limit],
    );
    return affected;
  }

  /** Forgets decisions that are carried out; two minutes are longer than any transaction that could still owe something. */
  async forgetOldDiscards(): Promise<void> {
    await sql(
      this.manager,
      `UPDATE webhook_endpoints w SET discard_before = NULL
       WHERE w.deleted_at IS NULL AND w.discard_before < now() - interval '2 minutes'
         AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
                         WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.created_at < w.discard_before)`,
    );
  }
}
