import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';
import { newestFirst } from './newest-first.js';
import type { CatalogPackage } from './package.js';
import { PackageEntity } from './package.entity.js';

/** What a package is made of, with its type in SQL. */
const COLUMNS: Readonly<Record<string, string>> = {
  id: 'text',
  title: 'text',
  type: 'text',
  region: 'text',
  coverage: 'text[]',
  kind: 'text',
  data_bytes: 'bigint',
  unlimited: 'boolean',
  voice_minutes: 'int',
  sms_count: 'int',
  validity_days: 'int',
  activation_policy: 'text',
  topup_supported: 'boolean',
  networks: 'jsonb',
  speed_policy: 'text',
  notes: 'text',
  price_amount: 'bigint',
  currency: 'text',
  retail_amount: 'bigint',
  available: 'boolean',
  cost_micros: 'bigint',
};
const NAMES = Object.keys(COLUMNS);
const CHANGING = NAMES.filter((name) => name !== 'id');
const NEW_VALUES = CHANGING.map((name) => `EXCLUDED.${name}`).join(', ');

const UPSERT = `
  INSERT INTO packages AS p (mode, ${NAMES.join(', ')})
  SELECT $1, r.* FROM jsonb_to_recordset($2::jsonb)
    AS r (${Object.entries(COLUMNS)
      .map((column) => column.join(' '))
      .join(', ')})
  ON CONFLICT (mode, id) DO UPDATE SET (${CHANGING.join(', ')}, updated_at) = (${NEW_VALUES}, now())
  WHERE (${CHANGING.map((name) => `p.${name}`).join(', ')}) IS DISTINCT FROM (${NEW_VALUES})`;

/** SQL of `packages` and `catalog_versions`. */
@Injectable()
export class CatalogRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

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

  /** Moves with every change of the mode's packages. */
  async getVersion(mode: Mode): Promise<number> {
    const { rows } = await sql<{ version: string }>(
      this.manager,
      'SELECT version FROM catalog_versions WHERE mode = $1',
      [mode],
    );
    return toSafeInteger(rows[0]?.version ?? 0);
  }

  /** Inserts new packages, updates changed ones, leaves the rest; the version moves only when a row did. */
  async upsert(tx: Tx, mode: Mode, packages: readonly CatalogPackage[]): Promise<number> {
    const { affected } = await sql(tx.manager, UPSERT, [mode, JSON.stringify(packages.map(toRow))]);
    if (affected > 0) {
      await sql(tx.manager, 'UPDATE catalog_versions SET version = version + 1 WHERE mode = $1', [mode]);
    }
    return affected;
  }
}

function toRow(item: CatalogPackage): Record<string, unknown> {
  return {
    id: item.id,
    title: item.title,
    type: item.type,
    region: item.region,
    coverage: item.coverage,
    kind: item.kind,
    data_bytes: item.dataBytes,
    unlimited: item.unlimited,
    voice_minutes: item.voiceMinutes,
    sms_count: item.smsCount,
    validity_days: item.validityDays,
    activation_policy: item.activationPolicy,
    topup_supported: item.topupSupported,
    networks: item.networks,
    speed_policy: item.speedPolicy,
    notes: item.notes,
    price_amount: item.price.amount,
    currency: item.price.currency,
    retail_amount: item.retailPrice?.amount ?? null,
    available: item.available,
    cost_micros: item.costMicros,
  };
}
