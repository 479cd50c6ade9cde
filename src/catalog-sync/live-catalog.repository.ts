import { Injectable } from '@nestjs/common';
import {
  CatalogChangesRepository,
  CatalogRepository,
  PackageEntity,
  type PackageKind,
} from '../catalog/index.js';
import { sql, type SqlParameter, type Tx } from '../infra/database/index.js';
import type { LivePackage } from './live-packages.js';

/** A provider, and how its top-ups are matched: by coverage, or by its own list per base package. */
export interface PackageSeller {
  readonly provider: string;
  readonly fits: 'coverage' | 'list';
}

/** Writes one provider's packages: changes, withdrawals, sources, and price history. */
@Injectable()
export class LiveCatalogRepository {
  constructor(
    private readonly catalog: CatalogRepository,
    private readonly changes: CatalogChangesRepository,
  ) {}

  /** Packages of `provider` that are currently sold. */
  async listAvailable(tx: Tx, provider: string): Promise<readonly PackageEntity[]> {
    return tx.manager
      .createQueryBuilder(PackageEntity, 'p')
      .where(`p.mode = 'live' AND p.available`)
      .andWhere('p.id IN (SELECT package_id FROM package_sources WHERE provider = :provider)', { provider })
      .getMany();
  }

  /** Top-ups of `provider` in the catalog, and whether each is sold. */
  async listKnownTopups(tx: Tx, provider: string): Promise<ReadonlyMap<string, boolean>> {
    const { rows } = await sql<{ id: string; available: boolean }>(
      tx.manager,
      `SELECT p.id, p.available FROM packages p JOIN package_sources s ON s.package_id = p.id
       WHERE p.mode = 'live' AND s.provider = $1 AND s.kind = 'topup'`,
      [provider],
    );
    return new Map(rows.map(({ id, available }) => [id, available]));
  }

  /** Returns the number of new or changed packages. */
  async write(tx: Tx, seller: PackageSeller, packages: readonly LivePackage[]): Promise<number> {
    if (packages.length === 0) return 0;
    // A fixed order, so that jobs that write packages of one provider cannot deadlock.
    const sorted = [...packages].sort((a, b) => (a.item.id < b.item.id ? -1 : 1));
    await this.writeSources(tx, seller, sorted);
    const items = sorted.map(({ item }) => item);
    const changed = await this.catalog.upsert(tx, 'live', items);
    const ids = items.map(({ id }) => id);
    if (changed > 0) await this.recordPrices(tx, 'p.id = ANY ($1::text[])', [ids]);
    return changed;
  }

  /** Stops the sale of these packages without deleting them, and returns how many were on sale. */
  async withdraw(tx: Tx, provider: string, ids: readonly string[]): Promise<number> {
    return (await this.markWithdrawn(tx, 's.provider = $1 AND p.id = ANY ($2::text[])', [provider, ids]))
      .length;
  }

  /** Same for all packages of these kinds that are missing from the list: the provider no longer sells them. */
  async withdrawOthers(
    tx: Tx,
    provider: string,
    listed: { readonly kinds: readonly PackageKind[]; readonly ids: readonly string[] },
  ): Promise<number> {
    const which = 's.provider = $1 AND p.kind = ANY ($2::text[]) AND NOT p.id = ANY ($3::text[])';
    return (await this.markWithdrawn(tx, which, [provider, listed.kinds, listed.ids])).length;
  }

  /** Same for all packages of providers other than these; returns the numbers by provider. */
  async withdrawUnconnected(tx: Tx, connected: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const provider of await this.markWithdrawn(tx, 'NOT s.provider = ANY ($1::text[])', [connected]))
      counts.set(provider, (counts.get(provider) ?? 0) + 1);
    // Their top-ups are withdrawn too, and are sold again only after a new query.
    await sql(
      tx.manager,
      `UPDATE package_sources SET topups_asked_at = NULL, topups_not_before = NULL
       WHERE NOT provider = ANY ($1::text[]) AND topups_asked_at IS NOT NULL`,
      [connected],
    );
    return counts;
  }

  /** Adds a row for each of these packages whose cost, price or availability has changed since its last row. */
  private async recordPrices(tx: Tx, which: string, parameters: readonly SqlParameter[]): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO package_price_history (package_id, cost_micros, price_amount, currency, available)
       SELECT p.id, p.cost_micros, p.price_amount, p.currency, p.available
       FROM packages p
       JOIN package_sources s ON s.package_id = p.id
       LEFT JOIN LATERAL (SELECT h.cost_micros, h.price_amount, h.currency, h.available FROM package_price_history h
                          WHERE h.package_id = p.id ORDER BY h.changed_at DESC LIMIT 1) AS last ON true
       WHERE p.mode = 'live' AND ${which}
         AND (p.cost_micros, p.price_amount, p.currency, p.available)
           IS DISTINCT FROM (last.cost_micros, last.price_amount, last.currency, last.available)`,
      parameters,
    );
  }

  /** Returns the provider of each package that was on sale. */
  private async markWithdrawn(
    tx: Tx,
    which: string,
    parameters: readonly SqlParameter[],
  ): Promise<readonly string[]> {
    await this.changes.lock(tx, 'live');
    const { rows } = await sql<{ id: string; provider: string }>(
      tx.manager,
      `UPDATE packages p SET available = false, updated_at = now()
       FROM package_sources s
       WHERE s.package_id = p.id AND p.mode = 'live' AND p.available AND ${which}
       RETURNING p.id, s.provider`,
      parameters,
    );
    if (rows.length > 0) {
      const withdrawn = rows.map(({ id }) => ({ id, kind: 'withdrawn', changed: ['available'] }) as const);
      await this.changes.record(tx, 'live', withdrawn);
      await this.recordPrices(tx, 'p.id = ANY ($1::text[])', [rows.map(({ id }) => id)]);
    }
    return rows.map(({ provider }) => provider);
  }

  private async writeSources(
    tx: Tx,
    { provider, fits }: PackageSeller,
    packages: readonly LivePackage[],
  ): Promise<void> {
    await sql(
      tx.manager,
      `INSERT INTO package_sources AS s (package_id, provider, upstream_id, kind, cost_micros, cost_currency, fits)
       SELECT r.package_id, $1, r.upstream_id, r.kind, r.cost_micros, r.cost_currency, $3
       FROM jsonb_to_recordset($2::jsonb)
         AS r (package_id text, upstream_id text, kind text, cost_micros bigint, cost_currency text)
       ON CONFLICT (package_id) DO UPDATE
         SET cost_micros = EXCLUDED.cost_micros, cost_currency = EXCLUDED.cost_currency, fits = EXCLUDED.fits,
             updated_at = now()
         WHERE (s.cost_micros, s.cost_currency, s.fits)
           IS DISTINCT FROM (EXCLUDED.cost_micros, EXCLUDED.cost_currency, EXCLUDED.fits)`,
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
        fits,
      ],
    );
  }
}
