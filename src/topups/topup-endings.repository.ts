import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { TopupLease } from './topup-jobs.repository.js';
import { statusesBefore, type TopupStatus } from './topup-state.js';

/** The last placement of a top-up as it was at one time. */
export interface TopupSighting {
  /** Seconds of the epoch, as text: a Date would cut the microseconds. Null when nothing has ever left. */
  readonly placedAt: string | null;
  /** The provider may not show the last placement yet. */
  readonly withinReadLag: boolean;
}

/**
 * SQL that ends what a worker, or support, works on in `topups`. Every write is guarded by the lease's fence and the
 * status; false means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class TopupEndingsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  async markCompleted(tx: Tx, lease: TopupLease): Promise<boolean> {
    return this.finish(tx, lease, 'completed', 'completed_at = now()', []);
  }

  async markFailed(tx: Tx, lease: TopupLease, failure: ProviderFailure): Promise<boolean> {
    const assignments = 'failed_at = now(), failure_code = $4, failure_reason = $5';
    return this.finish(tx, lease, 'failed', assignments, [failure.code, failure.reason]);
  }

  /**
   * A processing top-up that nobody is at now, by the database's clock (D40); null for any other. While the provider
   * may deny the last placement, the top-up is due only after that and as long again twice, for support to decide in:
   * a worker that places it again would begin the read lag anew, for ever.
   */
  async keepWorkersOff(topupId: string, readLagMs: number): Promise<TopupSighting | null> {
    const { rows } = await sql<{ placed_at: string | null; within_lag: boolean }>(
      this.manager,
      `UPDATE topups SET next_attempt_at = CASE WHEN upstream_placed_at + $2 * interval '1 millisecond' > now()
         THEN greatest(next_attempt_at, upstream_placed_at + 3 * $2 * interval '1 millisecond')
         ELSE next_attempt_at END
       WHERE id = $1 AND status = 'processing' AND (lease_until IS NULL OR lease_until <= now())
       RETURNING extract(epoch FROM upstream_placed_at)::text AS placed_at,
                 coalesce(upstream_placed_at + $2 * interval '1 millisecond' > now(), false) AS within_lag`,
      [topupId, readLagMs],
    );
    const row = rows[0];
    return row ? { placedAt: row.placed_at, withinReadLag: row.within_lag } : null;
  }

  /**
   * Takes a processing top-up over that nobody is at: the leases before are void. Null when somebody has ended it,
   * asks the provider right now, or has placed it again since it was seen, so that what the provider said is outdated.
   */
  async takeOver(tx: Tx, topupId: string, seen: TopupSighting): Promise<TopupLease | null> {
    const { rows } = await sql<{ fence: string }>(
      tx.manager,
      `UPDATE topups SET fence = fence + 1
       WHERE id = $1 AND status = 'processing' AND (lease_until IS NULL OR lease_until <= now())
         AND extract(epoch FROM upstream_placed_at)::text IS NOT DISTINCT FROM $2
       RETURNING fence`,
      [topupId, seen.placedAt],
    );
    return rows[0] ? { topupId, fence: Number(rows[0].fence) } : null;
  }

  /** Makes a top-up that is not at its end due now. */
  async makeDue(tx: Tx, topupId: string): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE topups SET next_attempt_at = now() WHERE id = $1 AND status IN ('pending', 'processing')`,
      [topupId],
    );
    return affected === 1;
  }

  private async finish(
    tx: Tx,
    lease: TopupLease,
    to: TopupStatus,
    assignments: string,
    parameters: readonly SqlParameter[],
  ): Promise<boolean> {
    const { affected } = await sql(
      tx.manager,
      `UPDATE topups SET status = $3, next_attempt_at = NULL, lease_until = NULL, last_error = NULL,
         updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status IN (${statusesBefore(to)
         .map((status) => `'${status}'`)
         .join(', ')})`,
      [lease.topupId, lease.fence, to, ...parameters],
    );
    return affected === 1;
  }
}
