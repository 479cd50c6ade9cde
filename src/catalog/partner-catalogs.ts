import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CatalogRepository } from './catalog.repository.js';
import type { PackageEntity } from './package.entity.js';
import { atPartnerPrice, type PriceList, priceOfPackage } from './price-list.js';
import { PriceListsRepository } from './price-lists.repository.js';

/** All packages of a mode at one version, newest first, at the catalogue's own prices. */
export interface CatalogSnapshot {
  readonly mode: Mode;
  /** Moves with every change. */
  readonly version: string;
  readonly packages: readonly PackageEntity[];
}

interface CheckedSnapshot {
  readonly snapshot: CatalogSnapshot;
  readonly checkedAtMs: number;
}

/** A partner's own terms, null for none, and its prices of the packages of a snapshot in minor units, once asked for. */
interface CheckedList {
  readonly list: PriceList | null;
  readonly checkedAtMs: number;
  readonly amounts: WeakMap<CatalogSnapshot, Float64Array>;
}

/** A list may lag the table by this much; orders read the table itself. */
const CHECK_INTERVAL_MS = 1_000;
/** Of all partners together; the lists used longest ago make room. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** Of a partner without a list, and of one price of its own, measured generously. */
const ENTRY_BYTES = 400;
const PRICE_BYTES = 250;
/** Prices of a snapshot, for as many packages as a large catalogue has. */
const AMOUNTS_BYTES = 8 * 8_000;

/** The catalogue in memory, reloaded when its version has moved. */
@Injectable()
export class CatalogSnapshots {
  private readonly cached = new Map<Mode, CheckedSnapshot>();
  private readonly loading = new Map<Mode, Promise<CatalogSnapshot>>();

  constructor(private readonly catalog: CatalogRepository) {}

  /** The snapshot of `mode`, checked within the last second. Synchronous while it is fresh. */
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
 * The catalogue as one partner sees and pays it. Packages are priced when they are shown: a copy of all of them for
 * each partner would take megabytes, and milliseconds whenever it was not kept.
 */
export class PartnerCatalog {
  /** Moves with every change; that of the price list is part of it. Without a list it is the same for all partners. */
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

  /** Newest first, at the catalogue's own prices. */
  get packages(): readonly PackageEntity[] {
    return this.base.packages;
  }

  /** The package as the partner sees and pays it. */
  atItsPrice(item: PackageEntity): PackageEntity {
    const list = this.terms?.list;
    return list ? atPartnerPrice(item, list) : item;
  }

  /** What the partner pays for the package at this place of `packages`, in minor units. */
  priceAmountAt(index: number): number {
    const list = this.terms?.list;
    return list ? this.amountsBy(list)[index]! : this.packages[index]!.priceAmount;
  }

  /** Whether the partner's view of the package changed at this moment or after it. */
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

/** The catalogue as one partner sees it: in Live at its own prices, in Sandbox the same for all. */
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

  /** Synchronous while it is fresh. */
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
