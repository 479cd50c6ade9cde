import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { TenantScope } from '../common/tenant-scope.js';
import { CursorCodec } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import { type CatalogPage, type CatalogSnapshot, PartnerCatalogs } from './partner-catalogs.js';
import type { PackageKind, PackageType, Region } from './package.js';
import type { PackageEntity } from './package.entity.js';

export interface CatalogFilters {
  readonly country?: string | undefined;
  readonly region?: Region | undefined;
  readonly type?: PackageType | undefined;
  readonly kind?: PackageKind | undefined;
  readonly minDataBytes?: number | undefined;
  readonly maxPriceAmount?: number | undefined;
  readonly updatedSince?: Date | undefined;
}

/** One page: the packages already as the bytes of their JSON, made once for every partner that asks the same. */
export interface CatalogListPage {
  readonly itemsJson: Buffer;
  readonly nextCursor: string | null;
  readonly etag: string;
}

/** More than the pages that all partners read between two changes of the catalogue. */
const MAX_CURSORS = 20_000;

/** GET /v1/catalog (spec section 4): filters joined by AND, newest first, cached by query until the catalogue moves. */
@Injectable()
export class CatalogList {
  /** `next_cursor` by page and partner: a cursor is bound to the partner, a page is not. */
  private readonly nextCursors = new LRUCache<string, string>({ max: MAX_CURSORS });

  constructor(
    private readonly catalogs: PartnerCatalogs,
    private readonly cursors: CursorCodec,
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
    const catalog = this.catalogs.get(scope);
    const snapshot = catalog instanceof Promise ? await catalog : catalog;
    const cursorScope = ['catalog', scope.partnerId, scope.mode, filters];
    const after = options.cursor === undefined ? null : this.cursors.decode(options.cursor, cursorScope);
    const { itemsJson, last, etag } = this.page(snapshot, filters, after, options.limit, toJson);
    return { itemsJson, nextCursor: last && this.nextCursor(scope, etag, last, cursorScope), etag };
  }

  /** The same for every call of the partner for this page: the entity tag names the version and the query. */
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
    snapshot: CatalogSnapshot,
    filters: CatalogFilters,
    after: readonly (string | number)[] | null,
    limit: number,
    toJson: (item: PackageEntity) => unknown,
  ): CatalogPage {
    const query = JSON.stringify([limit, after, filters]);
    const cached = snapshot.pages.get(query);
    if (cached) return cached;
    const found = select(snapshot.packages, filters, after, limit + 1);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1)! : null;
    const page: CatalogPage = {
      itemsJson: Buffer.from(JSON.stringify(items.map(toJson))),
      last: last && [last.createdAt.getTime(), last.id],
      etag: `W/"${snapshot.version}-${createHash('sha256').update(query).digest('base64url').slice(0, 16)}"`,
    };
    snapshot.pages.set(query, page);
    return page;
  }
}

function select(
  packages: readonly PackageEntity[],
  filters: CatalogFilters,
  after: readonly (string | number)[] | null,
  count: number,
): PackageEntity[] {
  const found: PackageEntity[] = [];
  for (const item of packages) {
    if (found.length === count) break;
    if ((after === null || isAfter(item, after)) && matches(item, filters)) found.push(item);
  }
  return found;
}

/** Newest first: later in the list means older, then smaller by id. */
function isAfter(item: PackageEntity, [createdAtMs, id]: readonly (string | number)[]): boolean {
  const at = item.createdAt.getTime();
  return at < Number(createdAtMs) || (at === createdAtMs && item.id < String(id));
}

function matches(item: PackageEntity, filters: CatalogFilters): boolean {
  const { country, region, type, kind, minDataBytes, maxPriceAmount, updatedSince } = filters;
  return (
    (country === undefined || item.coverage.includes(country)) &&
    (region === undefined || item.region === region) &&
    (type === undefined || item.type === type) &&
    (kind === undefined || item.kind === kind) &&
    (minDataBytes === undefined || item.unlimited || (item.dataBytes ?? 0) >= minDataBytes) &&
    (maxPriceAmount === undefined || item.priceAmount <= maxPriceAmount) &&
    (updatedSince === undefined || item.updatedAt >= updatedSince)
  );
}
