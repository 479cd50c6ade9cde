import { Injectable } from '@nestjs/common';
import { CatalogRepository } from '../catalog/index.js';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { LivePackage } from './live-packages.js';
import type { RuledPackage } from './package-rules.js';

/** Writes one wholesaler's packages: what changed, what is gone, where each comes from, and how prices moved. */
@Injectable()
export class LiveCatalogRepository {
  constructor(private readonly catalog: CatalogRepository) {}

  /** Packages of `provider` that are sold now. */
  async countAvailable(tx: Tx, provider: string): Promise<number> {
    const { rows } = await sql<{ count: number }>(
      tx.manager,
      `SELECT count(*)::int AS count FROM packages p JOIN package_sources s ON s.package_id = p.id
       WHERE p.mode = 'live' AND p.available AND s.provider = $1`,
      [provider],
    );
    return rows[0]!.count;
  }

  /** The packages that `countAvailable` counts. */
  async listAvailable(tx: Tx, provider: string): Promise<readonly RuledPackage[]> {
    const { rows } = await sql<RuledPackage>(
      tx.manager,
      `SELECT p.id, p.kind, p.coverage FROM packages p JOIN package_sources s ON s.package_id = p.id
       WHERE p.mode = 'live' AND p.available AND s.provider = $1`,
      [provider],
    );
    return rows;
  }

  /** Answers how many packages were new or changed. */
  async write(tx: Tx, provider: string, packages: readonly LivePackage[]): Promise<number> {
    await this.writeSources(tx, provider, packages);
    return this.catalog.upsert(
      tx,
      'live',
      packages.map(({ item }) => item),
    );
  }

  /** These packages stay, and are not sold (a tombstone); answers how many were sold until now. */
  async withdraw(tx: Tx, provider: string, ids: readonly string[]): Promise<number> {
    return (await this.markWithdrawn(tx, 's.provider = $1 AND p.id = ANY ($2::text[])', [provider, ids]))
      .length;
  }

  /** The same for all packages of the wholesaler but these: it no longer lists them. */
  async withdrawOthers(tx: Tx, provider: string, keptIds: readonly string[]): Promise<number> {
    const which = 's.provider = $1 AND NOT p.id = ANY ($2::text[])';
    return (await this.markWithdrawn(tx, which, [provider, keptIds])).length;
  }

  /** The same for all packages of wholesalers that are none of these; answers how many, by wholesaler. */
  async withdrawUnconnected(tx: Tx, connected: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const provider of await this.markWithdrawn(tx, 'NOT s.provider = ANY ($1::text[])', [connected]))
      counts.set(provider, (counts.get(provider) ?? 0) + 1);
    for (const provider of counts.keys()) await this.recordPrices(tx, provider);
    return counts;
  }

  /** One row for each package of `provider` whose cost, price or availability moved since its last row. */
  async recordPrices(tx: Tx, provider: string): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO package_price_history (package_id, cost_micros, price_amount, currency, available)
       SELECT p.id, p.cost_micros, p.price_amount, p.currency, p.available
       FROM packages p
       JOIN package_sources s ON s.package_id = p.id AND s.provider = $1
       LEFT JOIN LATERAL (SELECT h.cost_micros, h.price_amount, h.currency, h.available FROM package_price_history h
                          WHERE h.package_id = p.id ORDER BY h.changed_at DESC LIMIT 1) AS last ON true
       WHERE p.mode = 'live'
         AND (p.cost_micros, p.price_amount, p.currency, p.available)
           IS DISTINCT FROM (last.cost_micros, last.price_amount, last.currency, last.available)`,
      [provider],
    );
  }

  /** Answers the wholesaler of each package that was sold until now. */
  private async markWithdrawn(
    tx: Tx,
    which: string,
    parameters: readonly SqlParameter[],
  ): Promise<readonly string[]> {
    const { rows } = await sql<{ provider: string }>(
      tx.manager,
      `UPDATE packages p SET available = false, updated_at = now()
       FROM package_sources s
       WHERE s.package_id = p.id AND p.mode = 'live' AND p.available AND ${which}
       RETURNING s.provider`,
      parameters,
    );
    if (rows.length > 0) {
      await sql(tx.manager, `UPDATE catalog_versions SET version = version + 1 WHERE mode = 'live'`);
    }
    return rows.map(({ provider }) => provider);
  }

  private async writeSources(tx: Tx, provider: string, packages: readonly LivePackage[]): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO package_sources AS s (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
       SELECT r.package_id, $1, r.upstream_id, r.kind, r.cost_micros, r.cost_currency
       FROM jsonb_to_recordset($2::jsonb)
         AS r (package_id text, upstream_id text, kind text, cost_micros bigint, cost_currency text)
       ON CONFLICT (package_id) DO UPDATE
         SET cost_micros = EXCLUDED.cost_micros, cost_currency = EXCLUDED.cost_currency, updated_at = now()
         WHERE (s.cost_micros, s.cost_currency) IS DISTINCT FROM (EXCLUDED.cost_micros, EXCLUDED.cost_currency)`,
      [
        provider,
        JSON.stringify(
          packages.map(({ item, upstreamId, cost }) => ({
            package_id: item.id,
            upstream_id: upstreamId,
            kind: item.kind,
            cost_micros: cost.micros,
            cost_currency: cost.currency,
          })),
        ),
      ],
    );
  }
}
