import { Injectable } from '@nestjs/common';
import { AppError, NotFound } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { Money } from '../common/money.js';
import type { Tx } from '../infra/database/index.js';
import { CatalogRepository } from './catalog.repository.js';
import { CatalogSnapshots } from './catalog-snapshots.js';
import type { PackageEntity } from './package.entity.js';
import type { CatalogPackage, PackageKind } from './package.js';
import { topupPackageMatches } from './sandbox/sandbox-packages.js';

const PACKAGE_ID = /^pkg_[A-Za-z0-9_-]{1,60}$/;

/** Reads single packages, for showing and for selling. */
@Injectable()
export class CatalogService {
  constructor(
    private readonly catalog: CatalogRepository,
    private readonly snapshots: CatalogSnapshots,
  ) {}

  /** The package and the catalogue's version. @throws NotFound for unknown and other-mode packages (D14). */
  async getPackage(mode: Mode, id: string): Promise<{ item: PackageEntity; version: number }> {
    const snapshot = await this.snapshots.get(mode);
    const item = PACKAGE_ID.test(id) ? snapshot.packages.find((candidate) => candidate.id === id) : undefined;
    if (!item) throw new NotFound();
    return { item, version: snapshot.version };
  }

  /**
   * The package at its price of this moment, read in the transaction that sells it.
   * @throws NotFound, AppError `package_unavailable`, `price_changed` (D27, Refusals)
   */
  async getSellable(
    tx: Tx,
    wanted: { mode: Mode; id: string; kind: PackageKind; maxPrice: Money | null },
  ): Promise<PackageEntity> {
    const item = PACKAGE_ID.test(wanted.id)
      ? await this.catalog.findPackage(wanted.mode, wanted.id, tx.manager)
      : null;
    if (!item) throw new NotFound();
    if (!item.available || item.kind !== wanted.kind) throw new AppError('package_unavailable');
    const { maxPrice } = wanted;
    if (maxPrice && (maxPrice.currency !== item.currency || item.priceAmount > maxPrice.amount)) {
      throw new AppError('price_changed');
    }
    return item;
  }

  /** Available top-up packages that fit an eSIM of package `baseId`, cheapest first; none for an unknown base. */
  async listTopupsFor(mode: Mode, baseId: string): Promise<readonly PackageEntity[]> {
    const { packages } = await this.snapshots.get(mode);
    const base = packages.find((candidate) => candidate.id === baseId);
    if (!base) return [];
    return packages
      .filter(
        (item) =>
          item.kind === 'topup' && item.available && topupPackageMatches(toPackage(base), toPackage(item)),
      )
      .sort((a, b) => a.priceAmount - b.priceAmount || (a.id < b.id ? -1 : 1));
  }
}

function toPackage(item: PackageEntity): CatalogPackage {
  return {
    ...item,
    price: { amount: item.priceAmount, currency: item.currency },
    retailPrice: item.retailAmount === null ? null : { amount: item.retailAmount, currency: item.currency },
  };
}
