import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { CursorCodec } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import type { CatalogSnapshot } from './catalog-snapshots.js';
import { type CatalogReader, PartnerCatalogs } from './partner-catalogs.js';
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

interface CachedPage {
  readonly itemsJson: Buffer;
  readonly last: readonly [number, string] | null;
  readonly etag: string;
  /** `next_cursor` by partner: it is bound to the partner, the page is not. */
  readonly cursors: Map<string, string>;
}

const MAX_CACHED_PAGES = 500;
/** Of one page; more than the partners that read it between two changes of the catalogue. */
const MAX_CACHED_CURSORS = 5_000;

/** GET /v1/catalog (spec section 4): filters joined by AND, newest first, cached by query until the catalogue moves. */
@Injectable()
export class CatalogList {
  constructor(
    private readonly catalogs: PartnerCatalogs,
    private readonly cursors: CursorCodec,
  ) {}

  /**
   * @param toJson serializes one package, as the API shows it
   * @throws AppError `invalid_cursor`
   */
  async list(
    reader: CatalogReader,
    filters: CatalogFilters,
    options: ListOptions,
    toJson: (item: PackageEntity) => unknown,
  ): Promise<CatalogListPage> {
    const held = this.catalogs.get(reader);
    const snapshot = held instanceof Promise ? await held : held;
    const scope = ['catalog', reader.partnerId, reader.mode, filters];
    const after = options.cursor === undefined ? null : this.cursors.decode(options.cursor, scope);
    const page = this.page(snapshot, filters, after, options.limit, toJson);
    return {
      itemsJson: page.itemsJson,
      nextCursor: page.last ? this.cursorOf(page, page.last, reader.partnerId, scope) : null,
      etag: page.etag,
    };
  }

  private cursorOf(
    page: CachedPage,
    last: readonly [number, string],
    partnerId: string,
    scope: unknown,
  ): string {
    let cursor = page.cursors.get(partnerId);
    if (cursor === undefined) {
      if (page.cursors.size >= MAX_CACHED_CURSORS) page.cursors.clear();
      page.cursors.set(partnerId, (cursor = this.cursors.encode(last, scope)));
    }
    return cursor;
  }

  private page(
    snapshot: CatalogSnapshot,
    filters: CatalogFilters,
    after: readonly (string | number)[] | null,
    limit: number,
    toJson: (item: PackageEntity) => unknown,
  ): CachedPage {
    const query = JSON.stringify([limit, after, filters]);
    const cached = snapshot.pages.get(query) as CachedPage | undefined;
    if (cached) return cached;
    const found = select(snapshot.packages, filters, after, limit + 1);
    const items = found.slice(0, limit);
    const last = found.length > limit ? items.at(-1)! : null;
    const page: CachedPage = {
      itemsJson: Buffer.from(JSON.stringify(items.map(toJson))),
      last: last && [last.createdAt.getTime(), last.id],
      cursors: new Map(),
      etag: `W/"${snapshot.version}-${createHash('sha256').update(query).digest('base64url').slice(0, 16)}"`,
    };
    if (snapshot.pages.size >= MAX_CACHED_PAGES) snapshot.pages.clear();
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
