import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { columnsOf, sql, type SqlColumn, toSafeInteger, type Tx } from '../infra/database/index.js';
import { newestFirst } from './newest-first.js';
import type { CatalogPackage } from './package.js';
import { PackageEntity } from './package.entity.js';

/** Maps each column to a package's value; a column without an entry does not compile. */
const VALUES: Record<
  Exclude<keyof PackageEntity, 'mode' | 'id' | 'createdAt' | 'updatedAt'>,
  (item: CatalogPackage) => unknown
> = {
  title: (item) => item.title,
  type: (item) => item.type,
  region: (item) => item.region,
  coverage: (item) => item.coverage,
  kind: (item) => item.kind,
  dataBytes: (item) => item.dataBytes,
  unlimited: (item) => item.unlimited,
  voiceMinutes: (item) => item.voiceMinutes,
  smsCount: (item) => item.smsCount,
  validityDays: (item) => item.validityDays,
  activationPolicy: (item) => item.activationPolicy,
  topupSupported: (item) => item.topupSupported,
  networks: (item) => item.networks,
  speedPolicy: (item) => item.speedPolicy,
  notes: (item) => item.notes,
  terms: (item) => item.terms,
  priceAmount: (item) => item.price.amount,
  currency: (item) => item.price.currency,
  retailAmount: (item) => item.retailPrice?.amount ?? null,
  available: (item) => item.available,
  costMicros: (item) => item.costMicros,
};
const FIELDS = Object.keys(VALUES) as (keyof typeof VALUES)[];

function upsertOf(columns: readonly SqlColumn[]): string {
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => `EXCLUDED.${name}`).join(', ');
  return `
  INSERT INTO packages AS p (mode, id, ${names.join(', ')})
  SELECT $1, r.* FROM jsonb_to_recordset($2::jsonb)
    AS r (id text, ${columns.map(({ name, type }) => `${name} ${type}`).join(', ')})
  ON CONFLICT (mode, id) DO UPDATE SET (${names.join(', ')}, updated_at) = (${values}, now())
  WHERE (${names.map((name) => `p.${name}`).join(', ')}) IS DISTINCT FROM (${values})`;
}

/** SQL of `packages` and `catalog_versions`. */
@Injectable()
export class CatalogRepository {
  private readonly columns: readonly SqlColumn[];
  private readonly upsertStatement: string;

  constructor(@InjectEntityManager() private readonly manager: EntityManager) {
    this.columns = columnsOf(manager, PackageEntity, FIELDS);
    this.upsertStatement = upsertOf(this.columns);
  }

  async findPackage(
    mode: Mode,
    id: string,
    manager: EntityManager = this.manager,
  ): Promise<PackageEntity | null> {
    return manager.findOneBy(PackageEntity, { mode, id });
  }

  async listAll(mode: Mode): Promise<PackageEntity[]> {
    return (await this.manager.findBy(PackageEntity, { mode })).sort(newestFirst);
  }

  /** Increases with every change of the mode's packages. */
  async getVersion(mode: Mode): Promise<number> {
    const { rows } = await sql<{ version: string }>(
      this.manager,
      'SELECT version FROM catalog_versions WHERE mode = $1',
      [mode],
    );
    return toSafeInteger(rows[0]?.version ?? 0);
  }

  /** Inserts new packages and updates changed ones. The version changes only when a row did. */
  async upsert(tx: Tx, mode: Mode, packages: readonly CatalogPackage[]): Promise<number> {
    const rows = packages.map((item) => this.toRow(item));
    const { affected } = await sql(tx.manager, this.upsertStatement, [mode, JSON.stringify(rows)]);
    if (affected > 0) {
      await sql(tx.manager, 'UPDATE catalog_versions SET version = version + 1 WHERE mode = $1', [mode]);
    }
    return affected;
  }

  private toRow(item: CatalogPackage): Record<string, unknown> {
    const values = this.columns.map(({ name }, at) => [name, VALUES[FIELDS[at]!](item)]);
    return { id: item.id, ...(Object.fromEntries(values) as Record<string, unknown>) };
  }
}
