import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CatalogRepository } from './catalog.repository.js';
import type { PackageEntity } from './package.entity.js';
import { atPartnerPrice, type PriceList } from './price-list.js';
import { PriceListsRepository } from './price-lists.repository.js';

/** One page of a catalogue, its packages already as the bytes of their JSON. */
export interface CatalogPage {
  readonly itemsJson: Buffer;
  /** Creation time in milliseconds and id of the last package; null when no page follows. */
  readonly last: readonly [number, string] | null;
  readonly etag: string;
}

/** All packages of a mode at one version, newest first. */
export interface CatalogSnapshot {
  /** Moves with every change; the version of a price list is part of it. */
  readonly version: string;
  readonly packages: readonly PackageEntity[];
  /** Pages of this version, by query; gone with the snapshot. */
  readonly pages: LRUCache<string, CatalogPage>;
}

interface CheckedSnapshot {
  readonly snapshot: CatalogSnapshot;
  readonly checkedAtMs: number;
}

interface PricedSnapshot extends CheckedSnapshot {
  readonly list: PriceList | null;
  /** The catalogue that `snapshot` was made of. */
  readonly base: CatalogSnapshot;
}

/** A list may lag the table by this much; orders read the table itself. */
const CHECK_INTERVAL_MS = 1_000;
/** Partners whose own prices are kept, and pages of one catalogue; the one used longest ago makes room. */
const MAX_PARTNERS = 200;
const MAX_PAGES = 500;

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
        current?.version === version ? current : newSnapshot(version, await this.catalog.listAll(mode));
      this.cached.set(mode, { snapshot, checkedAtMs: performance.now() });
      return snapshot;
    } finally {
      this.loading.delete(mode);
    }
  }
}

/** The catalogue as one partner sees it: in Live at its own prices, in Sandbox the same for all. */
@Injectable()
export class PartnerCatalogs {
  private readonly cached = new LRUCache<string, PricedSnapshot>({ max: MAX_PARTNERS });

  constructor(
    private readonly snapshots: CatalogSnapshots,
    private readonly lists: PriceListsRepository,
  ) {}

  /** Synchronous while it is fresh. */
  get({ partnerId, mode }: TenantScope): CatalogSnapshot | Promise<CatalogSnapshot> {
    const base = this.snapshots.get(mode);
    if (mode === 'sandbox') return base;
    const cached = this.cached.get(partnerId);
    if (cached && cached.base === base && isFresh(cached)) return cached.snapshot;
    return this.refresh(partnerId, base);
  }

  private async refresh(
    partnerId: string,
    current: CatalogSnapshot | Promise<CatalogSnapshot>,
  ): Promise<CatalogSnapshot> {
    const [base, list] = await Promise.all([current, this.lists.find(partnerId)]);
    const cached = this.cached.get(partnerId);
    const isSame = cached?.base === base && cached.list?.version === list?.version;
    const snapshot = isSame ? cached.snapshot : priced(base, list);
    this.cached.set(partnerId, { list, base, snapshot, checkedAtMs: performance.now() });
    return snapshot;
  }
}

function isFresh({ checkedAtMs }: CheckedSnapshot): boolean {
  return performance.now() - checkedAtMs < CHECK_INTERVAL_MS;
}

function priced(base: CatalogSnapshot, list: PriceList | null): CatalogSnapshot {
  if (list === null) return base;
  const packages = base.packages.map((item) => atPartnerPrice(item, list));
  return newSnapshot(`${base.version}.${list.version}`, packages);
}

function newSnapshot(version: string, packages: readonly PackageEntity[]): CatalogSnapshot {
  return { version, packages, pages: new LRUCache({ max: MAX_PAGES }) };
}
