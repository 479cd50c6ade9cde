import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { PartnerCatalog } from './partner-catalogs.js';

/** A response body, or a part of it, that is serialized already. */
export interface CatalogPage {
  readonly itemsJson: Buffer;
  readonly etag: string;
}

/** Limit for all partners and modes together; least recently used pages are evicted. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024;
/** Memory that a page uses in addition to its bytes, for the objects around them and its query. */
const PAGE_OVERHEAD_BYTES = 1_000;

/** Serialized pages of catalogs, cached by query until the catalog changes. */
@Injectable()
export class CatalogPages {
  /** Keyed by mode, version and query: partners without their own prices share them. */
  private readonly pages = new LRUCache<string, CatalogPage>({
    maxSize: MAX_PAGE_BYTES,
    sizeCalculation: ({ itemsJson }) => itemsJson.length + PAGE_OVERHEAD_BYTES,
  });

  /** Memory of the cached pages in bytes. */
  get bytes(): number {
    return this.pages.calculatedSize;
  }

  /**
   * The page of the catalog for this query.
   * @param isCached false for queries of which a caller could create one with every call, and evict the pages of others
   */
  get<T extends object>(
    { mode, version }: PartnerCatalog,
    query: unknown,
    isCached: boolean,
    build: () => T & Pick<CatalogPage, 'itemsJson'>,
  ): T & CatalogPage {
    const text = JSON.stringify(query);
    const key = `${mode} ${version} ${text}`;
    const cached = this.pages.get(key);
    if (cached) return cached as T & CatalogPage;
    const hash = createHash('sha256').update(text).digest('base64url').slice(0, 16);
    const page = { ...build(), etag: `W/"${mode}-${version}-${hash}"` };
    if (isCached) this.pages.set(key, page);
    return page;
  }
}
