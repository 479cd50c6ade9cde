import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Money } from '../common/money.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';
import type { PriceList } from './price-list.js';

interface PriceListRow {
  margin_bps: number | null;
  prices: Record<string, Money>;
  version: string;
  updated_at: Date;
}

/** SQL of `price_lists`. */
@Injectable()
export class PriceListsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * The partner's list, or null for none. Returns `known` itself while it is current, so that its prices are not sent
   * again.
   */
  async findChanged(partnerId: string, known: PriceList | null): Promise<PriceList | null> {
    const { rows } = await sql<PriceListRow & { is_known: boolean }>(
      this.manager,
      `SELECT margin_bps, version, updated_at, coalesce(version = $2, false) AS is_known,
              CASE WHEN version = $2 THEN NULL ELSE prices END AS prices
       FROM price_lists WHERE partner_id = $1`,
      [partnerId, known?.version ?? null],
    );
    if (!rows[0]) return null;
    return rows[0].is_known ? known : toPriceList(rows[0]);
  }

  async replace(
    tx: Tx,
    partnerId: string,
    list: Pick<PriceList, 'marginBps' | 'prices'>,
  ): Promise<PriceList> {
    const { rows } = await sql<PriceListRow>(
      tx.manager,
      `INSERT INTO price_lists (partner_id, margin_bps, prices, version)
       VALUES ($1, $2, $3::jsonb, nextval('price_list_versions'))
       ON CONFLICT (partner_id) DO UPDATE
         SET margin_bps = EXCLUDED.margin_bps, prices = EXCLUDED.prices, version = EXCLUDED.version, updated_at = now()
       RETURNING margin_bps, prices, version, updated_at`,
      [partnerId, list.marginBps, JSON.stringify(list.prices)],
    );
    return toPriceList(rows[0]!);
  }
}

function toPriceList(row: PriceListRow): PriceList {
  return {
    marginBps: row.margin_bps,
    prices: row.prices,
    version: toSafeInteger(row.version),
    updatedAt: row.updated_at,
  };
}
