import type { EntityManager } from 'typeorm';
import { sql } from '../database/index.js';

export interface LeasedRowsOptions<Lease> {
  /** A constant of the code, never input: it stands in the SQL as it is. */
  readonly table: string;
  readonly leaseMs: number;
  idOf(lease: Lease): string;
}

/**
 * SQL that is the same for every table of leased work whose lanes are partners: `partner_id`, `next_attempt_at`,
 * `lease_until`, `fence`. What a claim does besides is each table's own. Due times and leases are the database's (D40).
 */
export abstract class LeasedRows<Lease extends { readonly fence: number }> {
  protected readonly leaseMs: number;

  protected constructor(
    protected readonly manager: EntityManager,
    private readonly rows: LeasedRowsOptions<Lease>,
  ) {
    this.leaseMs = rows.leaseMs;
  }

  /**
   * When the partner's next row is due. Leased ones do not count: whoever holds the lease looks again at its end,
   * and the sweep finds the lease of a dead worker.
   */
  async nextDueAt(partnerId: string): Promise<Date | null> {
    const { rows } = await sql<{ at: Date | null }>(
      this.manager,
      `SELECT min(next_attempt_at) AS at FROM ${this.rows.table}
       WHERE partner_id = $1 AND next_attempt_at IS NOT NULL AND (lease_until IS NULL OR lease_until <= now())`,
      [partnerId],
    );
    return rows[0]?.at ?? null;
  }

  /** Partners that have something due and nobody at it: their wake-up was lost (D1). */
  async listLanesDue(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ partner_id: string }>(
      this.manager,
      `SELECT DISTINCT partner_id FROM ${this.rows.table}
       WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now()) LIMIT $1`,
      [limit],
    );
    return rows.map((row) => row.partner_id);
  }

  /** Extends leases that are still ours. A lapsed one stays lapsed: somebody may have acted on it. */
  async renew(leases: readonly Lease[]): Promise<void> {
    await sql(
      this.manager,
      `UPDATE ${this.rows.table} t SET lease_until = now() + $3 * interval '1 millisecond'
       FROM (SELECT * FROM unnest($1::text[], $2::bigint[]) AS l (id, fence) ORDER BY id) AS l
       WHERE t.id = l.id AND t.fence = l.fence AND t.lease_until > now()`,
      [leases.map((lease) => this.rows.idOf(lease)), leases.map((lease) => lease.fence), this.leaseMs],
    );
  }
}
