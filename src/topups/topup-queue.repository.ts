import { Inject, Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { ProviderFailure } from '../providers/index.js';
import { TopupEntity } from './topup.entity.js';
import { statusesBefore, type TopupStatus } from './topup-state.js';

/** The right to work on a top-up: void when the lease lapsed and another worker took it with a higher fence. */
export interface TopupLease {
  readonly topupId: string;
  readonly fence: number;
}

/** SQL of the worker's side of `topups`. Due times and leases are the database's (D40). */
@Injectable()
export class TopupQueueRepository {
  private readonly leaseMs: number;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    @Inject(APP_CONFIG) config: Pick<AppConfig, 'leaseMs'>,
  ) {
    this.leaseMs = config.leaseMs;
  }

  /** Leases up to `slots` due top-ups of a partner, oldest due first; pending ones become processing. */
  async claim(partnerId: string, slots: number): Promise<readonly TopupLease[]> {
    const { rows } = await sql<{ id: string; fence: string }>(
      this.manager,
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
      [partnerId, slots, this.leaseMs],
    );
    return rows.map((row) => ({ topupId: row.id, fence: Number(row.fence) }));
  }

  async getById(id: string): Promise<TopupEntity> {
    return this.manager.findOneByOrFail(TopupEntity, { id });
  }

  /**
   * When the partner's next top-up is due. Leased ones do not count: whoever holds the lease looks again at its end,
   * and the sweep finds the lease of a dead worker.
   */
  async nextDueAt(partnerId: string): Promise<Date | null> {
    const { rows } = await sql<{ at: Date | null }>(
      this.manager,
      `SELECT min(next_attempt_at) AS at FROM topups
       WHERE partner_id = $1 AND next_attempt_at IS NOT NULL AND (lease_until IS NULL OR lease_until <= now())`,
      [partnerId],
    );
    return rows[0]?.at ?? null;
  }

  /** Partners that have something due and nobody at it: their wake-up was lost (D1). */
  async listLanesDue(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ partner_id: string }>(
      this.manager,
      `SELECT DISTINCT partner_id FROM topups
       WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now()) LIMIT $1`,
      [limit],
    );
    return rows.map((row) => row.partner_id);
  }

  /** Extends leases that are still ours. */
  async renew(leases: readonly TopupLease[]): Promise<void> {
    await sql(
      this.manager,
      `UPDATE topups t SET lease_until = now() + $3 * interval '1 millisecond'
       FROM (SELECT * FROM unnest($1::text[], $2::bigint[]) AS l (id, fence) ORDER BY id) AS l
       WHERE t.id = l.id AND t.fence = l.fence AND t.lease_until IS NOT NULL`,
      [leases.map((lease) => lease.topupId), leases.map((lease) => lease.fence), this.leaseMs],
    );
  }

  /** Gives the top-up back, to be looked at after `delayMs`. */
  async postpone(lease: TopupLease, delayMs: number): Promise<void> {
    await sql(
      this.manager,
      `UPDATE topups SET next_attempt_at = now() + $3 * interval '1 millisecond', lease_until = NULL, updated_at = now()
       WHERE id = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`,
      [lease.topupId, lease.fence, delayMs],
    );
  }

  /** Notes that a placement is about to leave. False when the lease is void: then nothing may leave. */
  async recordPlacement(lease: TopupLease): Promise<boolean> {
    const { affected } = await sql(
      this.manager,
      `UPDATE topups SET upstream_placed_at = now(), updated_at = now()
       WHERE id = $1 AND fence = $2 AND status = 'processing'`,
      [lease.topupId, lease.fence],
    );
    return affected === 1;
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

  /** Milliseconds until the upstream can be believed that it does not know the last placement; 0 when it can. */
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

  /** Ends the top-up as applied. False when the lease is void: then nothing may be written. */
  async markCompleted(tx: Tx, lease: TopupLease): Promise<boolean> {
    return this.finish(tx, lease, 'completed', 'completed_at = now()', []);
  }

  /** Ends the top-up as failed. False when the lease is void. */
  async markFailed(tx: Tx, lease: TopupLease, failure: ProviderFailure): Promise<boolean> {
    const assignments = 'failed_at = now(), failure_code = $4, failure_reason = $5';
    return this.finish(tx, lease, 'failed', assignments, [failure.code, failure.reason]);
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
      `UPDATE topups SET status = $3, next_attempt_at = NULL, lease_until = NULL, updated_at = now(), ${assignments}
       WHERE id = $1 AND fence = $2 AND status IN (${statusesBefore(to)
         .map((status) => `'${status}'`)
         .join(', ')})`,
      [lease.topupId, lease.fence, to, ...parameters],
    );
    return affected === 1;
  }
}
