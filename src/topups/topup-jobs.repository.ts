import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql } from '../infra/database/index.js';
import { type Claim, InjectNotifier, LeasedJobsRepository, WorkerNotifier } from '../infra/jobs/index.js';
import { TopupEntity } from './topup.entity.js';
import { TOPUP_JOBS } from './topup-jobs.js';

/** The right to work on a top-up: void when the lease lapsed and another worker took it with a higher fence. */
export interface TopupLease {
  readonly topupId: string;
  readonly fence: number;
}

/** SQL of the worker's side of `topups`. Due times and leases are the database's (D40). */
@Injectable()
export class TopupJobsRepository extends LeasedJobsRepository<TopupLease> {
  constructor(
    @InjectEntityManager() manager: EntityManager,
    @InjectNotifier(TOPUP_JOBS) notifier: WorkerNotifier,
    @Inject(APP_CONFIG) { leaseMs }: Pick<AppConfig, 'leaseMs'>,
  ) {
    super(manager, { table: 'topups', leaseMs, notifier, idOf: (lease) => lease.topupId });
  }

  /** Leases up to `limit` due top-ups of a partner, oldest due first; pending ones become processing. */
  async claim(partnerId: string, limit: number): Promise<Claim<TopupLease>> {
    const { items, ...rest } = await this.claimRows<{ id: string; fence: string }>(
      `UPDATE topups t
       SET status = 'processing',
           lease_until = now() + $3 * interval '1 millisecond',
           fence = t.fence + 1,
           attempts = t.attempts + 1,
           updated_at = now()
       FROM (SELECT id FROM topups
             WHERE partner_id = $1 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
             ORDER BY next_attempt_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) AS due
       WHERE t.id = due.id AND t.status IN ('pending', 'processing')
       RETURNING t.id, t.fence`,
      [partnerId, limit, this.leaseMs],
    );
    return { ...rest, items: items.map((row) => ({ topupId: row.id, fence: Number(row.fence) })) };
  }

  async getById(id: string): Promise<TopupEntity> {
    return this.manager.findOneByOrFail(TopupEntity, { id });
  }

  /** Gives the top-up back, to be looked at after `delayMs`; `errorClass` says what went wrong, if anything did. */
  async postpone(lease: TopupLease, delayMs: number, errorClass: string | null = null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE topups SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL,
         last_error = $4, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [lease.topupId, lease.fence, delayMs, errorClass],
    );
  }

  /**
   * Notes that a placement is about to leave, and answers a time of `performance.now()` before the note was written.
   * Null when the lease is void: then nothing may leave.
   */
  async recordPlacement(lease: TopupLease): Promise<number | null> {
    const notedAfter = performance.now();
    const { affected } = await sql(
      this.manager,
      `UPDATE topups SET upstream_placed_at = now(), updated_at = now()
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.topupId, lease.fence],
    );
    return affected === 1 ? notedAfter : null;
  }

  /** The placement may have taken effect at any time until now: its read lag begins only here. */
  async prolongPlacement(lease: TopupLease): Promise<void> {
    await sql(
      this.manager,
      `UPDATE topups SET upstream_placed_at = clock_timestamp() WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.topupId, lease.fence],
    );
  }

  /** Takes back the note of a placement that certainly had no effect: the last one is again that of `before`. */
  async undoPlacement(lease: TopupLease, before: Date | null): Promise<void> {
    await sql(
      this.manager,
      `UPDATE topups SET upstream_placed_at = $3, updated_at = now()
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.topupId, lease.fence, before],
    );
  }

  /** Milliseconds until the provider can be believed that it does not know the last placement; 0 when it can. */
  async readLagLeftMs(topupId: string, readLagMs: number): Promise<number> {
    const { rows } = await sql<{ ms: number }>(
      this.manager,
      `SELECT greatest(0, ceil(extract(epoch FROM upstream_placed_at + $2 * interval '1 millisecond' - now()) * 1000))::int
         AS ms
       FROM topups WHERE id = $1`,
      [topupId, readLagMs],
    );
    return rows[0]?.ms ?? 0;
  }
}
