import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { MicroMoney, Money } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { prepared, sql, toSafeInteger, toSafeIntegerOrNull, type Tx } from '../infra/database/index.js';
import type { ActivationPolicy, PackageKind } from './package.js';
import { priceByList } from './price-list.js';

/** The provider of a package, its id there, and our unit cost. */
export interface PackageSource {
  readonly provider: string;
  readonly upstreamPackageId: string;
  /** Null when the package costs us nothing. */
  readonly unitCost: MicroMoney | null;
}

/** A package as one partner can buy it now. */
export interface SellablePackage {
  readonly id: string;
  readonly kind: PackageKind;
  readonly available: boolean;
  readonly price: Money;
  /** Null for unlimited data. */
  readonly dataBytes: number | null;
  readonly validityDays: number;
  readonly activationPolicy: ActivationPolicy;
  /** Set for a package sold by the day: its price, data, validity and cost are those of one day. */
  readonly maxDays: number | null;
  /** Null if the wholesaler states no term of installation. */
  readonly installWithinDays: number | null;
  /** Null when no provider sells the package any more. */
  readonly source: PackageSource | null;
}

interface PackageRow {
  id: string;
  kind: PackageKind;
  available: boolean;
  price_amount: string;
  currency: string;
  data_bytes: string | null;
  validity_days: number;
  activation_policy: ActivationPolicy;
  max_days: number | null;
  install_within_days: number | null;
}

interface SourceRow {
  provider: string | null;
  upstream_id: string;
  cost_micros: string;
  cost_currency: string;
}

interface LivePackageRow extends PackageRow, SourceRow {
  listed_cost_micros: string | null;
  margin_bps: number | null;
  own_price: Money | null;
}

const COLUMNS = `
  p.id, p.kind, p.available, p.price_amount, p.currency, p.data_bytes, p.validity_days, p.activation_policy,
  (p.terms->>'maxDays')::int AS max_days, (p.terms->>'installWithinDays')::int AS install_within_days`;

const IN_SANDBOX = prepared(`SELECT ${COLUMNS} FROM packages p WHERE p.mode = 'sandbox' AND p.id = $1`);

/** Extracts only this package's fixed price from the list, which may hold thousands. */
const IN_LIVE = prepared(`
  SELECT ${COLUMNS}, p.cost_micros AS listed_cost_micros, l.margin_bps, l.prices -> p.id AS own_price,
         s.provider, s.upstream_id, s.cost_micros, s.cost_currency
  FROM packages p
  LEFT JOIN package_sources s ON s.package_id = p.id
  LEFT JOIN price_lists l ON l.partner_id = $2
  WHERE p.mode = 'live' AND p.id = $1`);

/**
 * Packages at the moment of sale: price, availability, source and cost in one statement of the selling transaction. The
 * displayed catalog may lag (`PartnerCatalogs`); the charged price must not.
 */
@Injectable()
export class SellablePackages {
  /** Null for an id that the mode's catalog does not have. */
  find(tx: Tx, scope: TenantScope, id: string): Promise<SellablePackage | null> {
    return BY_MODE[scope.mode](tx, id, scope.partnerId);
  }
}

const BY_MODE: Record<Mode, (tx: Tx, id: string, partnerId: string) => Promise<SellablePackage | null>> = {
  sandbox: findInSandbox,
  live: findInLive,
};

/** All partners pay the same, and the built-in provider uses our own package ids. */
async function findInSandbox(tx: Tx, id: string): Promise<SellablePackage | null> {
  const { rows } = await sql<PackageRow>(tx.manager, IN_SANDBOX, [id]);
  const [row] = rows;
  if (!row) return null;
  const source = { provider: 'sandbox', upstreamPackageId: id, unitCost: null };
  return { ...toTerms(row), price: listedPrice(row), source };
}

async function findInLive(tx: Tx, id: string, partnerId: string): Promise<SellablePackage | null> {
  const { rows } = await sql<LivePackageRow>(tx.manager, IN_LIVE, [id, partnerId]);
  const [row] = rows;
  if (!row) return null;
  const item = { costMicros: toSafeIntegerOrNull(row.listed_cost_micros), currency: row.currency };
  const terms = { own: row.own_price, marginBps: row.margin_bps };
  return { ...toTerms(row), price: priceByList(item, terms) ?? listedPrice(row), source: toSource(row) };
}

function toTerms(row: PackageRow): Omit<SellablePackage, 'price' | 'source'> {
  return {
    id: row.id,
    kind: row.kind,
    available: row.available,
    dataBytes: toSafeIntegerOrNull(row.data_bytes),
    validityDays: row.validity_days,
    activationPolicy: row.activation_policy,
    maxDays: row.max_days,
    installWithinDays: row.install_within_days,
  };
}

function listedPrice(row: PackageRow): Money {
  return { amount: toSafeInteger(row.price_amount), currency: row.currency };
}

function toSource(row: SourceRow): PackageSource | null {
  if (row.provider === null) return null;
  return {
    provider: row.provider,
    upstreamPackageId: row.upstream_id,
    unitCost: { micros: toSafeInteger(row.cost_micros), currency: row.cost_currency },
  };
}

/** Which provider sells which live package. Written by catalog-sync. */
@Injectable()
export class PackageSources {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** The source of a live package; null for one that no provider has ever sold. */
  async find(packageId: string): Promise<PackageSource | null> {
    const { rows } = await sql<SourceRow>(
      this.manager,
      'SELECT provider, upstream_id, cost_micros, cost_currency FROM package_sources WHERE package_id = $1',
      [packageId],
    );
    return rows[0] ? toSource(rows[0]) : null;
  }

  /** The packages among `ids` that `provider` sells. */
  async listProvidedBy(
    manager: EntityManager,
    mode: Mode,
    provider: string,
    packageIds: readonly string[],
  ): Promise<ReadonlySet<string>> {
    if (mode === 'sandbox') return new Set(packageIds);
    const { rows } = await sql<{ package_id: string }>(
      manager,
      'SELECT package_id FROM package_sources WHERE provider = $1 AND package_id = ANY ($2::text[])',
      [provider, packageIds],
    );
    return new Set(rows.map((row) => row.package_id));
  }
}
