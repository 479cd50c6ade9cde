import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql } from '../infra/database/index.js';
import type { PlacementKind } from '../providers/index.js';

/** Everything that a provider has sold under one reference. */
export interface FoundPurchase {
  readonly reference: string;
  readonly provider: string;
  readonly kind: PlacementKind;
  /** Null if the reference does not contain it. */
  readonly partnerId: string | null;
  readonly upstreamPackageId: string | null;
  /** Number of eSIMs, or 1 for a top-up; 0 when all of it failed. */
  readonly sold: number;
  /** Number of them that were canceled. */
  readonly takenBack: number;
  readonly soldAt: Date;
}

/** A purchase that the restored database did not know. */
export interface UnclaimedPurchase extends FoundPurchase {
  /** The order or top-up accepted since under the same reference; null while no partner has repeated it. */
  readonly claimedBy: string | null;
}

interface PurchaseRow {
  reference: string;
  provider: string;
  kind: PlacementKind;
  partner_id: string | null;
  upstream_package_id: string | null;
  sold: number;
  taken_back: number;
  sold_at: Date;
  claimed_by: string | null;
}

/** SQL of `unclaimed_purchases` and `placement_lookups` (D54). */
@Injectable()
export class UnclaimedPurchasesRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Stores purchases whose reference no order or top-up has, and returns their number. */
  async keepUnknown(epochId: number, purchases: readonly FoundPurchase[]): Promise<number> {
    const { rows } = await sql(
      this.manager,
      `INSERT INTO unclaimed_purchases AS u
         (reference, provider, kind, partner_id, upstream_package_id, sold, taken_back, sold_at, epoch_id)
       SELECT p.*, $9::int
       FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[]) AS p
         (reference, provider, kind, partner_id, upstream_package_id, sold, taken_back, sold_at)
       WHERE NOT EXISTS (SELECT FROM orders o WHERE o.provider_reference = p.reference)
         AND NOT EXISTS (SELECT FROM topups t WHERE t.provider_reference = p.reference)
       ON CONFLICT (reference) DO UPDATE
         SET sold = excluded.sold, taken_back = excluded.taken_back, epoch_id = excluded.epoch_id
       RETURNING reference`,
      [
        purchases.map(({ reference }) => reference),
        purchases.map(({ provider }) => provider),
        purchases.map(({ kind }) => kind),
        purchases.map(({ partnerId }) => partnerId),
        purchases.map(({ upstreamPackageId }) => upstreamPackageId),
        purchases.map(({ sold }) => sold),
        purchases.map(({ takenBack }) => takenBack),
        purchases.map(({ soldAt }) => soldAt.toISOString()),
        epochId,
      ],
    );
    return rows.length;
  }

  /** References of orders issued by this provider in a period: its list of that period must show them. */
  async sampleIssued(provider: string, from: Date, to: Date): Promise<readonly string[]> {
    const { rows } = await sql<{ reference: string }>(
      this.manager,
      `SELECT provider_reference AS reference FROM orders
       WHERE mode = 'live' AND provider = $1 AND status = 'issued' AND created_at >= $2 AND created_at < $3
       LIMIT 100`,
      [provider, from, to],
    );
    return rows.map(({ reference }) => reference);
  }

  /** Purchases that a restore has found, oldest first. */
  async list(epochId: number): Promise<readonly UnclaimedPurchase[]> {
    const { rows } = await sql<PurchaseRow>(
      this.manager,
      `SELECT u.reference, u.provider, u.kind, u.partner_id, u.upstream_package_id, u.sold, u.taken_back, u.sold_at,
              coalesce(o.id, t.id) AS claimed_by
       FROM unclaimed_purchases u
       LEFT JOIN orders o ON o.provider_reference = u.reference
       LEFT JOIN topups t ON t.provider_reference = u.reference
       WHERE u.epoch_id = $1 ORDER BY u.sold_at, u.reference`,
      [epochId],
    );
    return rows.map((row) => ({
      reference: row.reference,
      provider: row.provider,
      kind: row.kind,
      partnerId: row.partner_id,
      upstreamPackageId: row.upstream_package_id,
      sold: row.sold,
      takenBack: row.taken_back,
      soldAt: row.sold_at,
      claimedBy: row.claimed_by,
    }));
  }

  /** For `forMs`, new purchases of this kind for existing eSIMs are looked up before they are placed. */
  async lookFirst(provider: string, kind: PlacementKind, since: Date, forMs: number): Promise<void> {
    await sql(
      this.manager,
      `INSERT INTO placement_lookups AS l (provider, kind, since, restored_at, until)
       VALUES ($1, $2, $3, now(), now() + $4 * interval '1 millisecond')
       ON CONFLICT (provider, kind) DO UPDATE
         SET since = least(l.since, excluded.since), restored_at = excluded.restored_at, until = excluded.until`,
      [provider, kind, since, forMs],
    );
  }
}
