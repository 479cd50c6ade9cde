import { Injectable } from '@nestjs/common';
import { compareText } from '../common/compare-text.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { boundedCache } from '../infra/bounded-cache.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import { type CatalogPage, CatalogPages } from './catalog-pages.js';
import { newestFirst } from './newest-first.js';
import { type PartnerCatalog, PartnerCatalogs } from './partner-catalogs.js';
import type { PackageKind, PackageType, Region } from './package.js';
import type { PackageEntity } from './package.entity.js';
import type { PlanKind } from './package-terms.js';
import { shelve } from './shelf.js';

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
  /** Without it, newest first. */
  readonly sort?: CatalogSort | undefined;
}

export const CATALOG_SORTS = ['price', '-price', 'data', '-data'] as const;
export type CatalogSort = (typeof CATALOG_SORTS)[number];

/** One page whose packages are already serialized to JSON, once for all partners that request the same page. */
export interface CatalogListPage {
  readonly itemsJson: Buffer;
  readonly nextCursor: string | null;
  readonly etag: string;
}

/** One page of a list, with its packages already serialized. */
interface ListPage {
  readonly itemsJson: Buffer;
  /** The last package's place in the list; null when no page follows. */
  readonly last: CursorPlace | null;
}

/** Creation time in milliseconds and id; in a sorted list also the sort key. */
type CursorPlace = readonly (string | number)[];

/** More than the number of pages that all partners read between two changes of the catalog. */
const MAX_CURSORS = 20_000;

/** GET /v1/catalog (spec section 4): filters joined by AND, newest first or sorted, cached until the catalog changes. */
@Injectable()
export class CatalogList {
  /** `next_cursor` by page and partner: a cursor is bound to the partner, a page is not. */
  private readonly nextCursors = boundedCache<string>(MAX_CURSORS);

  constructor(
    private readonly catalogs: PartnerCatalogs,
    private readonly cursors: CursorCodec,
    private readonly pages: CatalogPages,
  ) {}

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
    last: CursorPlace,
    cursorScope: unknown,
  ): string {
    const key = `${partnerId} ${mode} ${etag}`;
    let cursor = this.nextCursors.get(key);
    if (cursor === undefined) this.nextCursors.set(key, (cursor = this.cursors.encode(last, cursorScope)));
    return cursor;
  }

  /**
   * The packages on sale that no other one of the list dominates, in the order of `sort` (default: by price), as one
   * page. Lists base packages unless the filters say otherwise.
   */
  async shelf(
    scope: TenantScope,
    filters: CatalogFilters,
    toJson: (item: PackageEntity) => unknown,
  ): Promise<CatalogPage> {
    const catalog = await this.catalogs.get(scope);
    const { kind = 'base', sort = 'price' } = filters;
    const wanted = { ...filters, kind, sort };
    return this.pages.get(catalog, ['shelf', wanted], !isFreeValued(wanted), () => {
      const found = sorted(catalog, select(catalog, wanted), sort).filter(
        (index) => catalog.packages[index]!.available,
      );
      const { kept, dropped } = shelve(
        found.map((index, place) => ({
          place,
          item: catalog.packages[index]!,
          price: catalog.priceAt(index),
        })),
      );
      const shown = kept
        .toSorted((a, b) => a.place - b.place)
        .map(({ item }, at) => ({
          ...(toJson(catalog.atItsPrice(item)) as object),
          shelf: { rank: at + 1 },
        }));
      const others = dropped
        .toSorted((a, b) => a.dropped.place - b.dropped.place)
        .map(({ dropped: { item }, by }) => ({ package_id: item.id, dominated_by: by.item.id }));
      return { itemsJson: Buffer.from(`${JSON.stringify(shown)},"dropped":${JSON.stringify(others)}`) };
    });
  }

  private page(
    catalog: PartnerCatalog,
    filters: CatalogFilters,
    after: CursorPlace | null,
    limit: number,
    toJson: (item: PackageEntity) => unknown,
  ): ListPage & CatalogPage {
    return this.pages.get<ListPage>(catalog, [limit, after, filters], !isFreeValued(filters), () => {
      const found = placesAfter(catalog, filters, after, limit + 1);
      const items = found.slice(0, limit).map((index) => catalog.packages[index]!);
      return {
        itemsJson: Buffer.from(JSON.stringify(items.map((item) => toJson(catalog.atItsPrice(item))))),
        last: found.length > limit ? placeOf(catalog, found[limit - 1]!, filters.sort) : null,
      };
    });
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

/** Indexes of at most `count` matching packages after the cursor's place, in the order of the list. */
function placesAfter(
  catalog: PartnerCatalog,
  filters: CatalogFilters,
  after: CursorPlace | null,
  count: number,
): number[] {
  const { sort } = filters;
  if (sort === undefined)
    return select(catalog, filters, (index) => after === null || isBehind(catalog, index, after), count);
  const found = select(catalog, filters, (index) => after === null || isBehind(catalog, index, after, sort));
  return sorted(catalog, found, sort).slice(0, count);
}

/** Indexes of at most `count` matching packages, newest first. */
function select(
  catalog: PartnerCatalog,
  filters: CatalogFilters,
  isWanted: (index: number) => boolean = () => true,
  count = Infinity,
): number[] {
  const found: number[] = [];
  for (const [index, item] of catalog.packages.entries()) {
    if (found.length === count) break;
    if (isWanted(index) && matches(item, filters) && matchesTerms(catalog, index, filters)) found.push(index);
  }
  return found;
}

/** Whether the package comes after a cursor's place. */
function isBehind(
  catalog: PartnerCatalog,
  index: number,
  [createdAt, id, ...key]: CursorPlace,
  sort?: CatalogSort,
): boolean {
  const last = { createdAt: new Date(Number(createdAt)), id: String(id) };
  const byKey =
    sort === undefined ? 0 : compareKeys(sortKeyOf(catalog, index, sort), [String(key[0]), Number(key[1])]);
  return (byKey || newestFirst(catalog.packages[index]!, last)) > 0;
}

function placeOf(catalog: PartnerCatalog, index: number, sort: CatalogSort | undefined): CursorPlace {
  const { createdAt, id } = catalog.packages[index]!;
  return [createdAt.getTime(), id, ...(sort === undefined ? [] : sortKeyOf(catalog, index, sort))];
}

/** Sorts indexes of packages; ties keep the catalog's order. */
function sorted(catalog: PartnerCatalog, indexes: readonly number[], sort: CatalogSort): number[] {
  return indexes
    .map((index) => ({ index, key: sortKeyOf(catalog, index, sort) }))
    .sort((a, b) => compareKeys(a.key, b.key) || a.index - b.index)
    .map(({ index }) => index);
}

/** Compared by text, then by number. */
type SortKey = readonly [string, number];

/** Prices are comparable within a currency only. Unlimited is the most data, and a package that adds days only has none. */
function sortKeyOf(catalog: PartnerCatalog, index: number, sort: CatalogSort): SortKey {
  const direction = sort.startsWith('-') ? -1 : 1;
  if (sort.endsWith('price')) return [catalog.currencyAt(index), direction * catalog.priceAmountAt(index)];
  const { unlimited, dataBytes } = catalog.packages[index]!;
  return ['', direction * (unlimited ? Number.MAX_SAFE_INTEGER : (dataBytes ?? 0))];
}

function compareKeys(a: SortKey, b: SortKey): number {
  return compareText(a[0], b[0]) || a[1] - b[1];
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
