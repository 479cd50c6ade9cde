import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { TenantScope } from '../common/tenant-scope.js';
import { boundedCache } from '../infra/bounded-cache.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import { newestFirst } from './newest-first.js';
import { type PartnerCatalog, PartnerCatalogs } from './partner-catalogs.js';
import type { PackageKind, PackageType, Region } from './package.js';
import type { PackageEntity } from './package.entity.js';
import type { PlanKind } from './package-terms.js';

export interface CatalogFilters {
  readonly country?: string | undefined;
  readonly region?: Region | undefined;
  readonly type?: PackageType | undefined;
  readonly kind?: PackageKind | undefined;
  readonly minDataBytes?: number | undefined;
  readonly maxPriceAmount?: number | undefined;
  readonly updatedSince?: Date | undefined;
  readonly plan?: PlanKind | undefined;
  readonly exitCountry?: string | undefined;
  /** Packages whose exit countries are unknown do not match. */
  readonly notExitCountry?: string | undefined;
  readonly maxValidityDays?: number | undefined;
  readonly topupSupported?: boolean | undefined;
}

/** One page whose packages are already serialized to JSON, once for all partners that request the same page. */
export interface CatalogListPage {
  readonly itemsJson: Buffer;
  readonly nextCursor: string | null;
  readonly etag: string;
}

/** One page of a catalog with its packages already serialized to JSON. */
interface CatalogPage {
  readonly itemsJson: Buffer;
  /** Creation time in milliseconds and id of the last package; null when no page follows. */
  readonly last: readonly [number, string] | null;
  readonly etag: string;
}

/** Limit for all partners and modes together; least recently used pages are evicted. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024;
/** Memory that a page uses in addition to its bytes, for the objects around them and its query. */
const PAGE_OVERHEAD_BYTES = 1_000;

/** More than the number of pages that all partners read between two changes of the catalog. */
const MAX_CURSORS = 20_000;

/** GET /v1/catalog (spec section 4): filters joined by AND, newest first, cached by query until the catalog changes. */
@Injectable()
export class CatalogList {
  /** `next_cursor` by page and partner: a cursor is bound to the partner, a page is not. */
  private readonly nextCursors = boundedCache<string>(MAX_CURSORS);
  /** Keyed by mode, version and query: partners without their own prices share them. */
  private readonly pages: LRUCache<string, CatalogPage>;

  constructor(
    private readonly catalogs: PartnerCatalogs,
    private readonly cursors: CursorCodec,
  ) {
    this.pages = new LRUCache({
      maxSize: MAX_PAGE_BYTES,
      sizeCalculation: ({ itemsJson }) => itemsJson.length + PAGE_OVERHEAD_BYTES,
    });
  }

  /** Memory of the cached pages in bytes. */
  get pageBytes(): number {
    return this.pages.calculatedSize;
  }

  /**
   * @param toJson serializes one package, as the API shows it
   * @throws AppError `invalid_cursor`
   */
  async list(
    scope: TenantScope,
    filters: CatalogFilters,
    options: ListOptions,
    toJson: (item: PackageEntity) => unknown,
  ): Promise<CatalogListPage> {
    const found = this.catalogs.get(scope);
    const catalog = found instanceof Promise ? await found : found;
    const cursorScope = ['catalog', scope.partnerId, scope.mode, filters];
    const after = options.cursor === undefined ? null : this.cursors.decode(options.cursor, cursorScope);
    const page = this.page(catalog, filters, after, options.limit, toJson);
    const { itemsJson, last, etag } = page;
    if (!last || isFreeValued(filters))
      return { itemsJson, nextCursor: last && this.cursors.encode(last, cursorScope), etag };
    return { itemsJson, nextCursor: this.nextCursor(scope, etag, last, cursorScope), etag };
  }

  /** Returns the same cursor for every call of the partner for this page, because the ETag covers version and query. */
  private nextCursor(
    { partnerId, mode }: TenantScope,
    etag: string,
    last: readonly [number, string],
    cursorScope: unknown,
  ): string {
    const key = `${partnerId} ${mode} ${etag}`;
    let cursor = this.nextCursors.get(key);
    if (cursor === undefined) this.nextCursors.set(key, (cursor = this.cursors.encode(last, cursorScope)));
    return cursor;
  }

  private page(
    catalog: PartnerCatalog,
    filters: CatalogFilters,
    after: readonly (string | number)[] | null,
    limit: number,
    toJson: (item: PackageEntity) => unknown,
  ): CatalogPage {
    const query = JSON.stringify([limit, after, filters]);
    const key = `${catalog.mode} ${catalog.version} ${query}`;
    const cached = this.pages.get(key);
    if (cached) return cached;
    const found = select(catalog, filters, after, limit + 1);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1)! : null;
    const page: CatalogPage = {
      itemsJson: Buffer.from(JSON.stringify(items.map((item) => toJson(catalog.atItsPrice(item))))),
      last: last && [last.createdAt.getTime(), last.id],
      etag: `W/"${catalog.version}-${createHash('sha256').update(query).digest('base64url').slice(0, 16)}"`,
    };
    if (!isFreeValued(filters)) this.pages.set(key, page);
    return page;
  }
}

/** Free-form values are not cached: a caller could create a page with every call, and evict the pages of others. */
function isFreeValued(filters: CatalogFilters): boolean {
  const { minDataBytes, maxPriceAmount, updatedSince, exitCountry, notExitCountry, maxValidityDays } =
    filters;
  return [minDataBytes, maxPriceAmount, updatedSince, exitCountry, notExitCountry, maxValidityDays].some(
    (value) => value !== undefined,
  );
}

function select(
  catalog: PartnerCatalog,
  filters: CatalogFilters,
  after: readonly (string | number)[] | null,
  count: number,
): PackageEntity[] {
  const found: PackageEntity[] = [];
  const last = after && { createdAt: new Date(Number(after[0])), id: String(after[1]) };
  for (const [index, item] of catalog.packages.entries()) {
    if (found.length === count) break;
    if (last !== null && newestFirst(item, last) <= 0) continue;
    if (matches(item, filters) && matchesTerms(catalog, index, filters)) found.push(item);
  }
  return found;
}

function matches(item: PackageEntity, filters: CatalogFilters): boolean {
  const { country, region, type, kind, minDataBytes } = filters;
  return (
    (country === undefined || item.coverage.includes(country)) &&
    (region === undefined || item.region === region) &&
    (type === undefined || item.type === type) &&
    (kind === undefined || item.kind === kind) &&
    (minDataBytes === undefined || item.unlimited || (item.dataBytes ?? 0) >= minDataBytes) &&
    matchesPlan(item, filters)
  );
}

function matchesPlan(item: PackageEntity, filters: CatalogFilters): boolean {
  const { plan, exitCountry, notExitCountry, maxValidityDays, topupSupported } = filters;
  const exits = item.terms.exitCountries;
  return (
    (plan === undefined || item.terms.plan === plan) &&
    (exitCountry === undefined || (exits?.includes(exitCountry) ?? false)) &&
    (notExitCountry === undefined || (exits !== null && !exits.includes(notExitCountry))) &&
    (maxValidityDays === undefined || item.validityDays <= maxValidityDays) &&
    (topupSupported === undefined || item.topupSupported === topupSupported)
  );
}

/** Filters that depend on the partner's own terms. */
function matchesTerms(
  catalog: PartnerCatalog,
  index: number,
  { maxPriceAmount, updatedSince }: CatalogFilters,
): boolean {
  return (
    (maxPriceAmount === undefined || catalog.priceAmountAt(index) <= maxPriceAmount) &&
    (updatedSince === undefined || catalog.changedSince(catalog.packages[index]!, updatedSince))
  );
}
