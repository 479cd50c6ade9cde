import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { AppError } from '../common/errors/index.js';
import { type Mode, perMode } from '../common/mode.js';
import type { Money } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { CatalogChangesRepository } from './catalog-changes.repository.js';
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

/** Read from the database, which was at least this recent when the check began. */
interface Checked {
  readonly checkedAtMs: number;
}

interface CheckedSnapshot extends Checked {
  readonly snapshot: CatalogSnapshot;
}

/** A partner's terms (null for none), and its prices of a snapshot's packages in minor units, computed on first use. */
interface CheckedList extends Checked {
  readonly list: PriceList | null;
  readonly amounts: WeakMap<CatalogSnapshot, Float64Array>;
}

/** A position of the change log, and when this process first saw it. */
interface SeenPosition {
  readonly position: number;
  readonly seenAtMs: number;
}

/** The change log as far as every process shows its changes. */
export interface SettledLog {
  /** Null until a position has settled. */
  readonly position: number | null;
  /** Time until a later position settles; null if there is none. */
  readonly nextInMs: number | null;
}

/** A catalog that was checked within this time is used without another check. */
const CHECK_INTERVAL_MS = 1_000;
/**
 * No process shows a catalog that it checked longer ago. A change that one process saw this long ago is therefore shown
 * by all of them. Orders read the tables themselves.
 */
export const MAX_LAG_MS = 2_000;
/** Checks that may be too slow for `MAX_LAG_MS`, such as one that loads the whole catalog, before a call fails. */
const MAX_CHECKS = 3;
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
  private readonly loading = new Map<Mode, Promise<CheckedSnapshot>>();
  private readonly seen = perMode((): SeenPosition[] => []);

  constructor(
    private readonly catalog: CatalogRepository,
    private readonly changes: CatalogChangesRepository,
  ) {}

  /** The snapshot of `mode` if it was checked within the last second. */
  getFresh(mode: Mode): CheckedSnapshot | undefined {
    const cached = this.cached.get(mode);
    return cached && isFresh(cached) ? cached : undefined;
  }

  /** The fresh snapshot of `mode`, or the one of a check. The check may have begun before the call. */
  async get(mode: Mode): Promise<CheckedSnapshot> {
    const fresh = this.getFresh(mode);
    if (fresh) return fresh;
    const loading = this.loading.get(mode) ?? this.refresh(mode);
    this.loading.set(mode, loading);
    return loading;
  }

  /** Positions that this process saw at least `MAX_LAG_MS` ago. */
  settledLog(mode: Mode): SettledLog {
    const seen = this.seen[mode];
    const now = performance.now();
    while (seen.length > 1 && hasSettled(seen[1]!, now)) seen.shift();
    const first = seen[0];
    const position = first && hasSettled(first, now) ? first.position : null;
    const next = position === null ? first : seen[1];
    return { position, nextInMs: next ? next.seenAtMs + MAX_LAG_MS - now : null };
  }

  private async refresh(mode: Mode): Promise<CheckedSnapshot> {
    try {
      const checkedAtMs = performance.now();
      const current = this.cached.get(mode)?.snapshot;
      const { version: number, position } = await this.changes.getVersion(mode);
      const version = String(number);
      const snapshot =
        current?.version === version
          ? current
          : { mode, version, packages: await this.catalog.listAll(mode) };
      const checked = { snapshot, checkedAtMs };
      this.cached.set(mode, checked);
      if (this.seen[mode].at(-1)?.position !== position)
        this.seen[mode].push({ position, seenAtMs: performance.now() });
      return checked;
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
    private readonly terms: Pick<CheckedList, 'list' | 'amounts'>,
  ) {
    const { list } = terms;
    this.version = list ? `${base.version}.${list.version}` : base.version;
  }

  get mode(): Mode {
    return this.base.mode;
  }

  /** Newest first, at the catalog's own prices. */
  get packages(): readonly PackageEntity[] {
    return this.base.packages;
  }

  /** At the catalog's own price. */
  find(id: string): PackageEntity | undefined {
    return this.packages.find((item) => item.id === id);
  }

  /** The package at the partner's price. */
  atItsPrice(item: PackageEntity): PackageEntity {
    const { list } = this.terms;
    return list ? atPartnerPrice(item, list) : item;
  }

  /** The partner's price of the package at this index of `packages`, in minor units. */
  priceAmountAt(index: number): number {
    const { list } = this.terms;
    return list ? this.amountsBy(list)[index]! : this.packages[index]!.priceAmount;
  }

  priceAt(index: number): Money {
    return { amount: this.priceAmountAt(index), currency: this.currencyAt(index) };
  }

  /** The currency of the partner's price of the package at this index. */
  currencyAt(index: number): string {
    const item = this.packages[index]!;
    return this.fixedPriceOf(item)?.currency ?? item.currency;
  }

  /** Whether the partner's price changes with these values of the catalog. */
  isPricedBy(item: PackageEntity, value: 'price' | 'cost'): boolean {
    if (this.fixedPriceOf(item)) return false;
    const isByMargin = this.terms.list?.marginBps != null && item.costMicros !== null;
    return (value === 'cost') === isByMargin;
  }

  private fixedPriceOf({ id }: PackageEntity): Money | null {
    const { list } = this.terms;
    return list && Object.hasOwn(list.prices, id) ? list.prices[id]! : null;
  }

  /** Whether the partner's view of the package has changed at or after this moment. */
  changedSince(item: PackageEntity, moment: Date): boolean {
    const listAt = this.terms.list?.updatedAt;
    return item.updatedAt >= moment || (listAt !== undefined && listAt >= moment);
  }

  private amountsBy(list: PriceList): Float64Array {
    const { amounts } = this.terms;
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

  /** Returns synchronously while snapshot and list are fresh. */
  get(scope: TenantScope): PartnerCatalog | Promise<PartnerCatalog> {
    const base = this.snapshots.getFresh(scope.mode);
    const terms = scope.mode === 'sandbox' ? NO_TERMS : this.cached.get(scope.partnerId);
    return base && terms && isFresh(terms) ? new PartnerCatalog(base.snapshot, terms) : this.check(scope);
  }

  /** @throws AppError `service_unavailable` if the database takes longer than processes may lag */
  private async check({ partnerId, mode }: TenantScope): Promise<PartnerCatalog> {
    for (let tries = 0; tries < MAX_CHECKS; tries++) {
      const [base, terms] = await Promise.all([
        this.snapshots.get(mode),
        mode === 'sandbox' ? NO_TERMS : this.getTerms(partnerId),
      ]);
      const oldest = Math.min(base.checkedAtMs, terms.checkedAtMs);
      if (performance.now() - oldest < MAX_LAG_MS) return new PartnerCatalog(base.snapshot, terms);
    }
    throw new AppError('service_unavailable', { headers: { 'retry-after': '1' } });
  }

  private async getTerms(partnerId: string): Promise<CheckedList> {
    const cached = this.cached.get(partnerId);
    if (cached && isFresh(cached)) return cached;
    const known = cached?.list ?? null;
    const checkedAtMs = performance.now();
    const list = await this.lists.findChanged(partnerId, known);
    const amounts: CheckedList['amounts'] = cached && list === known ? cached.amounts : new WeakMap();
    const checked = { list, amounts, checkedAtMs };
    this.cached.set(partnerId, checked);
    return checked;
  }
}

/** The terms of every Sandbox partner, which never change. */
const NO_TERMS: CheckedList = { list: null, amounts: new WeakMap(), checkedAtMs: Infinity };

function isFresh({ checkedAtMs }: Checked): boolean {
  return performance.now() - checkedAtMs < CHECK_INTERVAL_MS;
}

function hasSettled({ seenAtMs }: SeenPosition, now: number): boolean {
  return now - seenAtMs >= MAX_LAG_MS;
}
