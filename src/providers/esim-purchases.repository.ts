import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, toSafeIntegerOrNull } from '../infra/database/index.js';
import type { EsimPurchases } from './esim-provider.js';

interface PurchasesRow {
  order_reference: string;
  base_package_id: string;
  base_bytes: string | null;
  topups: { reference: string; packageId: string; dataBytes: number | null }[];
  doubtful: number;
}

/** Reads our records of what was bought for an eSIM: orders, top-ups and packages. */
@Injectable()
export class EsimPurchasesRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * The eSIM's purchases other than this top-up, completed or doubtful. @throws Error when the top-up does not exist
   */
  async getBesides(topupReference: string): Promise<EsimPurchases> {
    const { rows } = await sql<PurchasesRow>(
      this.manager,
      `SELECT o.provider_reference AS order_reference, o.upstream_package_id AS base_package_id,
              p.data_bytes AS base_bytes,
              coalesce((SELECT jsonb_agg(jsonb_build_object('reference', other.provider_reference,
                                 'packageId', other.upstream_package_id, 'dataBytes', other.data_added_bytes)
                               ORDER BY other.completed_at)
                        FROM topups other
                        WHERE other.esim_id = t.esim_id AND other.id <> t.id AND other.status = 'completed'), '[]')
                AS topups,
              (SELECT count(*) FROM topups other
               LEFT JOIN provider_placements placed ON placed.provider = other.provider
                 AND placed.operation = 'topup' AND placed.placement_key = other.provider_reference
               WHERE other.esim_id = t.esim_id AND other.id <> t.id AND other.status <> 'completed'
                 AND other.upstream_placed_at IS NOT NULL
                 -- refused for certain: the eSIM does not have it
                 AND NOT (other.status = 'failed' AND coalesce(placed.placements, 1) = 0))::int AS doubtful
       FROM topups t
       JOIN esims e ON e.id = t.esim_id
       JOIN orders o ON o.id = e.order_id
       LEFT JOIN packages p ON p.mode = o.mode AND p.id = o.package_id
       WHERE t.provider_reference = $1`,
      [topupReference],
    );
    const row = rows[0];
    if (!row) throw new Error('the top-up does not exist');
    return {
      orderReference: row.order_reference,
      basePackageId: row.base_package_id,
      baseBytes: toSafeIntegerOrNull(row.base_bytes),
      topups: row.topups.map(({ reference, packageId, dataBytes }) => ({
        reference,
        upstreamPackageId: packageId,
        dataBytes,
      })),
      doubtful: row.doubtful,
    };
  }

  /** Whether a placement of an order or top-up was sent twice, and may have been bought twice (B11). */
  async isPlacedTwice(providerReference: string): Promise<boolean> {
    const { rows } = await sql(
      this.manager,
      `SELECT 1 FROM provider_placements WHERE provider_reference = $1 AND placements > 1 LIMIT 1`,
      [providerReference],
    );
    return rows.length > 0;
  }
}
