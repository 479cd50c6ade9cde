import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CatalogRepository } from './catalog.repository.js';
import type { PackageEntity } from './package.entity.js';
import { atPartnerPrice, type PriceList, priceOfPackage } from './price-list.js';
import { PriceListsRepository } from './price-lists.repository.js';

/** All packages of a mode at one version, newest first, at the catalog's own prices. */
export interface CatalogSnapshot {
  readonly mode: Mode;
  /** Changes whenever a package changes. */
  readonly version: string;
  readonly packages: readonly PackageEntity[];
}

interface CheckedSnapshot {
  readonly snapshot: CatalogSnapshot;
  readonly checkedAtMs: number;
}

/** A partner's terms (null for none), and its prices of a snapshot's packages in minor units, computed on first use. */
interface CheckedList {
  readonly list: PriceList | null;
  readonly checkedAtMs: number;
  readonly amounts: WeakMap<CatalogSnapshot, Float64Array>;
}

/** Lists may lag the table by this much; orders read the table itself. */
const CHECK_INTERVAL_MS = 1_000;
/** Limit for all partners together; least recently used lists are evicted. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** Memory of a partner without a list, and of one price, estimated generously. */
const ENTRY_BYTES = 400;
const PRICE_BYTES = 250;
/** Memory of one snapshot's prices, assuming a large catalog. */
const AMOUNTS_BYTES = 8 * 8_000;

/** The catalog in memory, reloaded when its version has changed. */
@Injectable()
export class CatalogSnapshots {
  private readonly cached = new Map<Mode, CheckedSnapshot>();
  private readonly loading = new Map<Mode, Promise<CatalogSnapshot>>();

  constructor(private readonly catalog: CatalogRepository) {}

  /** The snapshot of `mode`, checked within the last second. Returns synchronously while it is fresh. */
  get(mode: Mode): CatalogSnapshot | Promise<CatalogSnapshot> {
    const cached = this.cached.get(mode);
    if (cached && isFresh(cached)) return cached.snapshot;
    const loading = this.loading.get(mode) ?? this.refresh(mode, cached?.snapshot);
    this.loading.set(mode, loading);
    return loading;
  }

  private async refresh(mode: Mode, current: CatalogSnapshot | undefined): Promise<CatalogSnapshot> {
    try {
      const version = String(await this.catalog.getVersion(mode));
      const snapshot =
        current?.version === version
          ? current
          : { mode, version, packages: await this.catalog.listAll(mode) };
      this.cached.set(mode, { snapshot, checkedAtMs: performance.now() });
      return snapshot;
    } finally {
      this.loading.delete(mode);
    }
  }
}

/**
 * The catalog with one partner's prices. Packages are priced when they are shown: a copy per partner would take
 * megabytes, and milliseconds whenever it was evicted.
 */
export class PartnerCatalog {
  /** Changes whenever a package or the price list changes. Partners without a list share the same version. */
  readonly version: string;

  constructor(
    private readonly base: CatalogSnapshot,
    private readonly terms: Pick<CheckedList, 'list' | 'amounts'> | null,
  ) {
    const list = terms?.list;
    this.version = list ? `${base.version}.${list.version}` : base.version;
  }

  get mode(): Mode {
    return this.base.mode;
  }

  /** Newest first, at the catalog's own prices. */
  get packages(): readonly PackageEntity[] {
    return this.base.packages;
  }

  /** The package at the partner's price. */
  atItsPrice(item: PackageEntity): PackageEntity {
    const list = this.terms?.list;
    return list ? atPartnerPrice(item, list) : item;
  }

  /** The partner's price of the package at this index of `packages`, in minor units. */
  priceAmountAt(index: number): number {
    const list = this.terms?.list;
    return list ? this.amountsBy(list)[index]! : this.packages[index]!.priceAmount;
  }

  /** Whether the partner's view of the package has changed at or after this moment. */
  changedSince(item: PackageEntity, moment: Date): boolean {
    const listAt = this.terms?.list?.updatedAt;
    return item.updatedAt >= moment || (listAt !== undefined && listAt >= moment);
  }

  private amountsBy(list: PriceList): Float64Array {
    const { amounts } = this.terms!;
    let known = amounts.get(this.base);
    if (!known) {
      known = Float64Array.from(
        this.packages,
        (item) => priceOfPackage(item, list)?.amount ?? item.priceAmount,
      );
      amounts.set(this.base, known);
    }
    return known;
  }
}

/** Partners' catalogs: their own prices in Live, the same for all in Sandbox. */
@Injectable()
export class PartnerCatalogs {
  private readonly cached = new LRUCache<string, CheckedList>({
    maxSize: MAX_LIST_BYTES,
    sizeCalculation: ({ list }) =>
      ENTRY_BYTES + (list ? AMOUNTS_BYTES + PRICE_BYTES * Object.keys(list.prices).length : 0),
  });

  constructor(
    private readonly snapshots: CatalogSnapshots,
    private readonly lists: PriceListsRepository,
  ) {}

  /** Returns synchronously while the snapshot is fresh. */
  get({ partnerId, mode }: TenantScope): PartnerCatalog | Promise<PartnerCatalog> {
    const base = this.snapshots.get(mode);
    if (mode === 'sandbox')
      return base instanceof Promise ? base.then(withoutTerms) : new PartnerCatalog(base, null);
    const cached = this.cached.get(partnerId);
    if (cached && isFresh(cached) && !(base instanceof Promise)) return new PartnerCatalog(base, cached);
    return this.refresh(partnerId, base, cached);
  }

  private async refresh(
    partnerId: string,
    current: CatalogSnapshot | Promise<CatalogSnapshot>,
    cached: CheckedList | undefined,
  ): Promise<PartnerCatalog> {
    const known = cached?.list ?? null;
    const [base, list] = await Promise.all([current, this.lists.findChanged(partnerId, known)]);
    const amounts: CheckedList['amounts'] = cached && list === known ? cached.amounts : new WeakMap();
    const checked = { list, amounts, checkedAtMs: performance.now() };
    this.cached.set(partnerId, checked);
    return new PartnerCatalog(base, checked);
  }
}

function withoutTerms(base: CatalogSnapshot): PartnerCatalog {
  return new PartnerCatalog(base, null);
}

function isFresh({ checkedAtMs }: { readonly checkedAtMs: number }): boolean {
  return performance.now() - checkedAtMs < CHECK_INTERVAL_MS;
}
