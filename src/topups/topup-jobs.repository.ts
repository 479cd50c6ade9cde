import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import {
  type Claim,
  InjectNotifier,
  LeasedJobsRepository,
  notifierModule,
  WorkerNotifier,
} from '../infra/jobs/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { statusesBefore, TopupEntity, type TopupStatus } from './topup.js';

/** BullMQ queue of notifications for partners' top-ups; a group is a partner and a mode, so that these take turns (D27, D41). */
export const TOPUP_JOBS = 'topup-jobs';

export const TopupNotifierModule = notifierModule(TOPUP_JOBS);

/** The right to work on a top-up: void when the lease lapsed and another worker took it with a higher fence. */
export interface TopupLease {
  readonly topupId: string;
  readonly fence: number;
}

/** The last placement of a top-up as it was at one time, while no worker held the top-up. */
export interface PlacementVersion {
  /** Seconds of the epoch, as text: a Date would cut the microseconds. Null when nothing has ever left. */
  readonly placedAt: string | null;
  /** The provider may not show the last placement yet. */
  readonly withinReadLag: boolean;
}

const CLAIM = `UPDATE topups t
  SET status = 'processing',
      lease_until = now() + $4 * interval '1 millisecond',
      fence = t.fence + 1,
      attempts = t.attempts + 1,
      updated_at = now()
  FROM (SELECT id FROM topups
        WHERE partner_id = $1 AND mode = $2 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
        ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
  WHERE t.id = due.id AND t.status IN ('pending', 'processing')
  RETURNING t.id, t.fence`;

/** SQL of claims, leases and placements in `topups`. Due times and leases are the database's (D40). */
@Injectable()
export class TopupJobsRepository extends LeasedJobsRepository<TopupLease> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
  ) {
    super(manager, { table: 'topups', claim: CLAIM, leaseMs, notifier, idOf: (lease) => lease.topupId });
  }

  /** Leases up to `limit` due top-ups of a partner and mode, oldest due first; pending ones become processing. */
  async claim(group: string, limit: number): Promise<Claim<TopupLease>> {
    const { items, ...rest } = await this.claimRows<{ id: string; fence: string }>(group, limit, [
      this.leaseMs,
    ]);
    return { ...rest, items: items.map((row) => ({ topupId: row.id, fence: Number(row.fence) })) };
  }

  async getById(id: string): Promise<TopupEntity> {
    return this.manager.findOneByOrFail(TopupEntity, { id });
  }

  /**
   * The last placement of a processing top-up that no worker holds, by the database's clock (D40); null for any other.
   * While the provider may deny that placement, the top-up is due only after that and as long again twice, for support
   * to decide in: a worker that places it again would begin the read lag anew, for ever.
   */
  async deferRetries(topupId: string, readLagMs: number): Promise<PlacementVersion | null> {
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
   * Acquires the lease of a processing top-up that no worker holds: the leases before are void. Null when the top-up has
   * ended, a worker asks its provider right now, or one has placed it again since `version`, so that what the provider
   * said is outdated.
   */
  async acquireLease(tx: Tx, topupId: string, version: PlacementVersion): Promise<TopupLease | null> {
    const { rows } = await sql<{ fence: string }>(
      tx.manager,
      `UPDATE topups SET fence = fence + 1
       WHERE id = $1 AND status = 'processing' AND (lease_until IS NULL OR lease_until <= now())
         AND extract(epoch FROM upstream_placed_at)::text IS NOT DISTINCT FROM $2
       RETURNING fence`,
      [topupId, version.placedAt],
    );
    return rows[0] ? { topupId, fence: Number(rows[0].fence) } : null;
  }
}

/**
 * SQL that records the outcome of what a worker, or support, works on in `topups`. Every write is guarded by the lease's fence and the
 * status, and answers the top-up's version (D48); null means that the lease is void, and then nothing may be written.
 */
@Injectable()
export class TopupOutcomesRepository {
  async markCompleted(tx: Tx, lease: TopupLease): Promise<number | null> {
    return this.finish(tx, lease, 'completed', 'completed_at = now()', []);
  }

  async markFailed(tx: Tx, lease: TopupLease, failure: ProviderFailure): Promise<number | null> {
    const assignments = 'failed_at = now(), failure_code = $4, failure_reason = $5';
    return this.finish(tx, lease, 'failed', assignments, [failure.code, failure.reason]);
  }

  private async finish(
    tx: Tx,
    lease: TopupLease,
    to: TopupStatus,
    assignments: string,
    parameters: readonly SqlParameter[],
  ): Promise<number | null> {
    const { rows } = await sql<{ version: number }>(
      tx.manager,
      `UPDATE topups SET status = $3, next_attempt_at = NULL, lease_until = NULL, last_error = NULL,
         updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status IN (${statusesBefore(to)
         .map((status) => `'${status}'`)
         .join(', ')}) RETURNING version`,
      [lease.topupId, lease.fence, to, ...parameters],
    );
    return rows[0]?.version ?? null;
  }
}
