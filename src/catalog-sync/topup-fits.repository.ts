import { Injectable } from '@nestjs/common';
import { TOPUP_FITS_FRESH_MS } from '../catalog/index.js';
import { sql, type Tx } from '../infra/database/index.js';

/** A base package whose top-ups are to be queried from its provider. */
export interface FitsToAsk {
  readonly baseId: string;
  readonly upstreamId: string;
}

/** SQL of `topup_fits` and of its query times, for the writing side. */
@Injectable()
export class TopupFitsRepository {
  /**
   * Leases at most `count` base packages for `leaseMs`: first those that a partner requested and that have no result
   * yet, then those on sale. In both groups, packages that were never queried come first, then those queried longest
   * ago.
   */
  async takeDue(
    tx: Tx,
    provider: string,
    { count, leaseMs }: { readonly count: number; readonly leaseMs: number },
  ): Promise<readonly FitsToAsk[]> {
    const { rows } = await sql<{ package_id: string; upstream_id: string }>(
      tx.manager,
      `WITH due AS (
         SELECT s.package_id, w.wanted, s.topups_asked_at AS asked_at
         FROM package_sources s
         JOIN packages p ON p.mode = 'live' AND p.id = s.package_id
         CROSS JOIN LATERAL (
           SELECT coalesce(s.topups_wanted_at > coalesce(s.topups_asked_at, '-infinity'), false) AS wanted) AS w
         WHERE s.provider = $1 AND s.kind = 'base' AND s.fits = 'list' AND p.topup_supported
           AND (s.topups_not_before IS NULL OR s.topups_not_before <= now())
           AND (w.wanted OR (p.available AND (s.topups_asked_at IS NULL
                                              OR s.topups_asked_at < now() - $4 * interval '1 millisecond')))
         ORDER BY w.wanted DESC, s.topups_asked_at NULLS FIRST, s.package_id
         LIMIT $2
         FOR UPDATE OF s SKIP LOCKED
       ), taken AS (
         UPDATE package_sources s SET topups_not_before = now() + $3 * interval '1 millisecond'
         FROM due WHERE due.package_id = s.package_id
         RETURNING s.package_id, s.upstream_id, due.wanted, due.asked_at
       )
       SELECT package_id, upstream_id FROM taken ORDER BY wanted DESC, asked_at NULLS FIRST, package_id`,
      [provider, count, leaseMs, TOPUP_FITS_FRESH_MS],
    );
    return rows.map(({ package_id, upstream_id }) => ({ baseId: package_id, upstreamId: upstream_id }));
  }

  /** Requests a priority refresh for the base packages that this top-up fits. */
  async wantAgain(tx: Tx, topupPackageId: string): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE package_sources s SET topups_asked_at = NULL, topups_not_before = NULL, topups_wanted_at = now()
       FROM topup_fits f WHERE f.topup_id = $1 AND s.package_id = f.base_id`,
      [topupPackageId],
    );
  }

  /** Releases packages that were not queried, or schedules their next query in `delayMs`. */
  async putOff(tx: Tx, baseIds: readonly string[], delayMs: number): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE package_sources SET topups_not_before = now() + $2 * interval '1 millisecond'
       WHERE package_id = ANY ($1::text[])`,
      [baseIds, delayMs],
    );
  }

  /** Replaces the package's fitting top-ups; returns the ids of those that no longer fit any package. */
  async replace(tx: Tx, baseId: string, topupIds: readonly string[]): Promise<readonly string[]> {
    await sql(
      tx.manager,
      `UPDATE package_sources SET topups_asked_at = now(), topups_not_before = NULL WHERE package_id = $1`,
      [baseId],
    );
    await sql(
      tx.manager,
      `INSERT INTO topup_fits (base_id, topup_id) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING`,
      [baseId, topupIds],
    );
    const { rows } = await sql<{ topup_id: string }>(
      tx.manager,
      `DELETE FROM topup_fits WHERE base_id = $1 AND NOT topup_id = ANY ($2::text[]) RETURNING topup_id`,
      [baseId, topupIds],
    );
    const left = await sql<{ id: string }>(
      tx.manager,
      `SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT 1 FROM topup_fits WHERE topup_id = id)`,
      [rows.map(({ topup_id }) => topup_id)],
    );
    return left.rows.map(({ id }) => id);
  }
}
