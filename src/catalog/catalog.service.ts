import { Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { Money } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import type { Tx } from '../infra/database/index.js';
import { CatalogRepository } from './catalog.repository.js';
import type { PackageEntity } from './package.entity.js';
import { chosenDays, forDays } from './days.js';
import { PartnerCatalogs } from './partner-catalogs.js';
import { lookOf } from './package.js';
import type { CatalogPackage, PackageKind } from './package.js';
import { TopupFits, topupPackageMatches, topupTermsMatch } from './topup-fits.js';
import { type PackageSource, type SellablePackage, SellablePackages } from './sellable-packages.js';

/** A package that can be sold now, with the price, data, validity and cost of all days. */
export type SoldPackage = SellablePackage & {
  readonly source: PackageSource;
  /** The chosen number of days (D60); null when the package's days are fixed. */
  readonly days: number | null;
};

/** A top-up, and the maximum that its eSIM takes; null if the wholesaler states none. */
export type SoldTopup = SoldPackage & { readonly maxTopups: number | null };

/** Also used for a package that only the other mode has. */
const NO_PACKAGE = 'This key cannot sell a package with this id. GET /v1/catalog lists its packages.';
/** The refusal is stored under the Idempotency-Key, so another body with the same key returns 422. */
const NO_PACKAGE_TO_BUY = `${NO_PACKAGE} Buy another package with a new Idempotency-Key.`;
/** Where to buy a package of another kind. */
const WRONG_KIND: Readonly<Record<PackageKind, string>> = {
  base: 'This package is not a top-up. Buy it with POST /v1/orders.',
  topup: 'This package is a top-up. Buy it for an eSIM with POST /v1/topups.',
};

export const PACKAGE_ID = /^pkg_[A-Za-z0-9_-]{1,60}$/;

/** Reads single packages, for display and for sale. */
@Injectable()
export class CatalogService {
  constructor(
    private readonly catalog: CatalogRepository,
    private readonly catalogs: PartnerCatalogs,
    private readonly sellable: SellablePackages,
    private readonly topupFits: TopupFits,
  ) {}

  /**
   * The package, the number of days to show it for, and the catalog's version.
   * @throws NotFound for unknown packages and those of the other mode (D14); ValidationFailed for a number of days that
   * the package does not have
   */
  async getPackage(
    scope: TenantScope,
    id: string,
    wanted: number | null,
  ): Promise<{ item: PackageEntity; days: number | null; version: string }> {
    const catalog = await this.catalogs.get(scope);
    const item = PACKAGE_ID.test(id) ? catalog.find(id) : undefined;
    if (!item) throw new NotFound(NO_PACKAGE);
    const days = chosenDays(item.terms.maxDays, wanted, '?days');
    return { item: catalog.atItsPrice(item), days, version: catalog.version };
  }

  /**
   * The package with its current price and provider, read in the transaction that sells it; null for one that the mode
   * does not have.
   */
  async findSellable(tx: Tx, scope: TenantScope, id: string): Promise<SellablePackage | null> {
    return PACKAGE_ID.test(id) ? this.sellable.find(tx, scope, id) : null;
  }

  /** Whether a package's plan goes on slower after its data (D59). */
  async goesOn(tx: Tx, mode: Mode, id: string): Promise<boolean> {
    const item = await this.catalog.findPackage(mode, id, tx.manager);
    return item?.terms.fairUse?.then === 'slower';
  }

  /**
   * The top-up for an eSIM that `provider` issued from package `baseId`, by the same rule as `topup-packages`, read in
   * the transaction that sells it. Checks whether it fits before price and availability.
   * @throws NotFound, ValidationFailed, AppError `topup_not_supported`, `package_unavailable`, `price_changed` (D27,
   * Refusals)
   */
  async getSellableTopup(
    tx: Tx,
    wanted: TenantScope & {
      id: string;
      baseId: string;
      provider: string;
      days: number | null;
      maxPrice: Money | null;
    },
  ): Promise<SoldTopup> {
    const { mode, id, baseId, provider } = wanted;
    const item = PACKAGE_ID.test(id) ? await this.catalog.findPackage(mode, id, tx.manager) : null;
    if (!item) throw new NotFound(NO_PACKAGE_TO_BUY);
    const base = await this.catalog.findPackage(mode, baseId, tx.manager);
    const known = mode === 'live' ? await this.topupFits.find(baseId, tx.manager) : null;
    if (!base || !isFitting(base, item, known)) throw new AppError('topup_not_supported');
    const found = await this.sellable.find(tx, wanted, id);
    if (!found) throw new NotFound(NO_PACKAGE_TO_BUY);
    // Without a source the top-up is unavailable, whichever provider sold it before.
    if (found.source && found.source.provider !== provider) throw new AppError('topup_not_supported');
    const sold = assertSold(found, { kind: 'topup', days: wanted.days, maxPrice: wanted.maxPrice });
    return { ...sold, maxTopups: base.terms.topup.maxCount };
  }

  /**
   * Available top-up packages for an eSIM of package `baseId`, cheapest first; none for an unknown base. If only the
   * provider knows which fit and its list is missing or old, the worker queries it soon, for a later call.
   */
  async listTopupsFor(scope: TenantScope, baseId: string): Promise<readonly PackageEntity[]> {
    const catalog = await this.catalogs.get(scope);
    const base = catalog.find(baseId);
    if (!base) return [];
    const known = scope.mode === 'live' ? await this.topupFits.find(baseId) : null;
    if (known !== null) await this.topupFits.want(baseId);
    const looks = new Set<string>();
    return (
      catalog.packages
        .filter((item) => item.kind === 'topup' && item.available && isFitting(base, item, known))
        .map((item) => catalog.atItsPrice(item))
        .sort((a, b) => a.priceAmount - b.priceAmount || (a.id < b.id ? -1 : 1))
        // If packages look the same, offer only the cheapest.
        .filter((item) => looks.size < looks.add(lookOf(item)).size)
    );
  }
}

/** @param known ids in the provider's own list; null when it has none */
function isFitting(base: PackageEntity, topup: PackageEntity, known: ReadonlySet<string> | null): boolean {
  const [ofBase, ofTopup] = [toPackage(base), toPackage(topup)];
  if (known === null) return topupPackageMatches(ofBase, ofTopup);
  return known.has(topup.id) && topupTermsMatch(ofBase, ofTopup);
}

/**
 * Checks that the item can be sold now as a `kind` for at most `maxPrice`, which is compared with the price of all days.
 * @throws NotFound, ValidationFailed, AppError `package_unavailable`, `price_changed`
 */
export function assertSold(
  item: SellablePackage | null,
  wanted: { readonly kind: PackageKind; readonly days: number | null; readonly maxPrice: Money | null },
): SoldPackage {
  if (!item) throw new NotFound(NO_PACKAGE_TO_BUY);
  const { available, kind } = item;
  if (kind !== wanted.kind) throw new AppError('package_unavailable', { detail: WRONG_KIND[kind] });
  if (!available) throw new AppError('package_unavailable');
  const days = chosenDays(item.maxDays, wanted.days, '/days');
  const { price, source, ...ofAllDays } = forDays(item, days);
  const { maxPrice } = wanted;
  if (maxPrice && (maxPrice.currency !== price.currency || price.amount > maxPrice.amount)) {
    throw new AppError('price_changed');
  }
  if (!source) throw new AppError('package_unavailable');
  const unitCost = source.unitCost && { ...source.unitCost, micros: source.unitCost.micros * (days ?? 1) };
  return { ...ofAllDays, price, days, source: { ...source, unitCost } };
}

function toPackage(item: PackageEntity): CatalogPackage {
  return {
    ...item,
    price: { amount: item.priceAmount, currency: item.currency },
    retailPrice: item.retailAmount === null ? null : { amount: item.retailAmount, currency: item.currency },
  };
}
