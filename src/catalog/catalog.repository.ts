import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { columnsOf, sql, type SqlColumn, type Tx } from '../infra/database/index.js';
import {
  CatalogChangesRepository,
  SELECT_CHANGES,
  type WrittenPackage,
} from './catalog-changes.repository.js';
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
  WITH r AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($2::jsonb)
      AS r (id text, ${columns.map(({ name, type }) => `${name} ${type}`).join(', ')})
  ), o AS MATERIALIZED (
    SELECT p.* FROM packages p WHERE p.mode = $1 AND p.id IN (SELECT id FROM r)
  ), n AS (
    INSERT INTO packages AS p (mode, id, ${names.join(', ')})
    SELECT $1, r.* FROM r
    ON CONFLICT (mode, id) DO UPDATE SET (${names.join(', ')}, updated_at) = (${values}, now())
    WHERE (${names.map((name) => `p.${name}`).join(', ')}) IS DISTINCT FROM (${values})
    RETURNING p.*
  )
  ${SELECT_CHANGES}`;
}

/** SQL of `packages`. */
@Injectable()
export class CatalogRepository {
  private readonly columns: readonly SqlColumn[];
  private readonly upsertStatement: string;

  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly changes: CatalogChangesRepository,
  ) {
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

  /**
   * Inserts new packages, updates changed ones and records both. The version changes only when a row did. Returns the
   * number of new and changed packages.
   */
  async upsert(tx: Tx, mode: Mode, packages: readonly CatalogPackage[]): Promise<number> {
    await this.changes.lock(tx, mode);
    const rows = packages.map((item) => this.toRow(item));
    const { rows: written } = await sql<WrittenPackage & object>(tx.manager, this.upsertStatement, [
      mode,
      JSON.stringify(rows),
    ]);
    await this.changes.record(tx, mode, written);
    return written.length;
  }

  private toRow(item: CatalogPackage): Record<string, unknown> {
    const values = this.columns.map(({ name }, at) => [name, VALUES[FIELDS[at]!](item)]);
    return { id: item.id, ...(Object.fromEntries(values) as Record<string, unknown>) };
  }
}
