import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { prepared, rowToEntity, sql, type Tx } from '../infra/database/index.js';
import {
  type Claim,
  InjectNotifier,
  LeasedJobsRepository,
  NO_OPEN_RESTORE,
  notifierModule,
  WorkerNotifier,
} from '../infra/jobs/index.js';
import { type TraceContext, Tracer } from '../infra/tracing/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { TopupEntity } from './topup.js';

/** BullMQ queue of notifications for partners' top-ups; a group is a partner and a mode, so that these take turns (D27, D41). */
export const TOPUP_JOBS = 'topup-jobs';

export const TopupNotifierModule = notifierModule(TOPUP_JOBS);

/** The right to work on a top-up: void when the lease lapsed and another worker took it with a higher fence. */
export interface TopupLease {
  readonly topupId: string;
  readonly fence: number;
}

/** A top-up that a worker has just claimed. */
export interface ClaimedTopup extends TopupLease {
  /** As the claim left it. */
  readonly topup: TopupEntity;
  /** The span of a claim that took several; null of one alone, or when nothing is traced. */
  readonly claimedIn: TraceContext | null;
}

/** The last placement of a top-up as it was at one time, while no worker held the top-up. */
export interface PlacementVersion {
  /** Seconds of the epoch, as text: a Date would cut the microseconds. Null when nothing has ever left. */
  readonly placedAt: string | null;
  /** The provider may not show the last placement yet. */
  readonly withinReadLag: boolean;
}

/** All that the entity has. Named, because a prepared statement must not read more after a migration. */
const COLUMNS = `t.id, t.partner_id, t.mode, t.esim_id, t.iccid, t.package_id, t.status, t.version, t.price_amount, t.currency,
  t.data_added_bytes, t.validity_added_days, t.reference, t.metadata, t.provider, t.provider_reference,
  t.upstream_package_id, t.unit_cost_micros, t.unit_cost_currency, t.upstream_placed_at, t.failure_code,
  t.failure_reason, t.attempts, t.last_error, t.next_attempt_at, t.lease_until, t.fence, t.accepted_request_id,
  t.traceparent, t.created_at, t.updated_at, t.completed_at, t.failed_at`;

const CLAIM = `UPDATE topups t
  SET status = 'processing',
      lease_until = now() + $4 * interval '1 millisecond',
      fence = t.fence + 1,
      attempts = t.attempts + 1,
      updated_at = now()
  FROM (SELECT id FROM topups
        WHERE partner_id = $1 AND mode = $2 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
          AND ${NO_OPEN_RESTORE}
        ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
  WHERE t.id = due.id AND t.status IN ('pending', 'processing')
  RETURNING ${COLUMNS}`;

/** SQL of claims, leases and placements in `topups`. Due times and leases are the database's (D40). */
@Injectable()
export class TopupJobsRepository extends LeasedJobsRepository<TopupLease, ClaimedTopup> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
    tracer: Tracer,
  ) {
    super(manager, {
      table: 'topups',
      claim: CLAIM,
      leaseMs,
      notifier,
      tracer,
      idOf: (lease) => lease.topupId,
    });
  }

  /** Leases and reads up to `limit` due top-ups of a partner and mode, oldest due first; pending ones become processing. */
  async claim(group: string, limit: number): Promise<Claim<ClaimedTopup>> {
    const { items, claimedIn, ...rest } = await this.claimRows<{ id: string; traceparent: string | null }>(
      group,
      limit,
      [this.leaseMs],
    );
    const claimed = items.map((row) => {
      const topup = rowToEntity(this.manager, TopupEntity, row);
      return { topupId: topup.id, fence: topup.fence, topup, claimedIn };
    });
    return { ...rest, items: claimed };
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

/** What a top-up came to. */
export interface TopupOutcome {
  readonly lease: TopupLease;
  /** Null: it completed. */
  readonly failure: ProviderFailure | null;
}

/** A top-up after its end was written. */
export interface ChangedTopup {
  readonly version: number;
  readonly at: Date;
}

/** Locked in the order of ids first: an UPDATE with a join has an order of its own. */
const END_TOPUPS = prepared(`
  WITH held AS (
    SELECT t.id, e.code, e.reason
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS e (id, fence, code, reason)
    JOIN topups t ON t.id = e.id AND t.fence = e.fence AND t.status = 'processing'
    ORDER BY t.id FOR NO KEY UPDATE OF t
  )
  UPDATE topups t
  SET status = CASE WHEN h.code IS NULL THEN 'completed' ELSE 'failed' END,
      completed_at = CASE WHEN h.code IS NULL THEN now() END,
      failed_at = CASE WHEN h.code IS NOT NULL THEN now() END,
      failure_code = h.code, failure_reason = h.reason, next_attempt_at = NULL, lease_until = NULL, last_error = NULL,
      updated_at = now()
  FROM held h WHERE t.id = h.id
  RETURNING t.id, t.fence, t.version, clock_timestamp() AS at`);

/**
 * SQL that records the outcome of what a worker, or support, works on in `topups`. Every write is guarded by the lease's fence and the
 * status.
 */
@Injectable()
export class TopupOutcomesRepository {
  /**
   * Ends many top-ups, in the order of their ids (D40). Answers for each what changed, with its version (D48); null where
   * the lease is void, also beside a later lease of the same top-up: then nothing may be written for it.
   */
  async end(tx: Tx, outcomes: readonly TopupOutcome[]): Promise<readonly (ChangedTopup | null)[]> {
    const { rows } = await sql<{ id: string; fence: string; version: number; at: Date }>(
      tx.manager,
      END_TOPUPS,
      [
        outcomes.map(({ lease }) => lease.topupId),
        outcomes.map(({ lease }) => lease.fence),
        outcomes.map(({ failure }) => failure?.code ?? null),
        outcomes.map(({ failure }) => failure?.reason ?? null),
      ],
    );
    const changed = new Map(rows.map(({ id, fence, ...change }) => [`${id} ${fence}`, change]));
    return outcomes.map(({ lease }) => changed.get(`${lease.topupId} ${lease.fence}`) ?? null);
  }
}
