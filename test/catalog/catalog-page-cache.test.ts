import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CatalogChangesRepository } from '../../src/catalog/catalog-changes.repository.js';
import { CatalogList, type CatalogFilters } from '../../src/catalog/catalog-list.js';
import { CatalogPages } from '../../src/catalog/catalog-pages.js';
import type { CatalogRepository } from '../../src/catalog/catalog.repository.js';
import { UNSTATED_TERMS } from '../../src/catalog/package-terms.js';
import { PackageEntity } from '../../src/catalog/package.entity.js';
import { CatalogSnapshots, PartnerCatalogs } from '../../src/catalog/partner-catalogs.js';
import type { PriceList } from '../../src/catalog/price-list.js';
import type { PriceListsRepository } from '../../src/catalog/price-lists.repository.js';
import type { TenantScope } from '../../src/common/tenant-scope.js';
import { CursorCodec } from '../../src/infra/crypto/index.js';

const ANNA: TenantScope = { partnerId: 'ptn_anna', mode: 'sandbox' };
const BEN: TenantScope = { partnerId: 'ptn_ben', mode: 'sandbox' };
const MEGABYTE = 1024 * 1024;
const AT = new Date('2026-11-21T10:00:00Z');

function newPackage(id: string): PackageEntity {
  return Object.assign(new PackageEntity(), {
    id,
    priceAmount: 100,
    costMicros: 1_000_000,
    currency: 'USD',
    coverage: ['FR', 'DE'],
    terms: UNSTATED_TERMS,
    createdAt: AT,
    updatedAt: AT,
  });
}

let list: CatalogList;
let pages: CatalogPages;
/** Counts of serialized packages and of price lists read. */
let serialized: number;
let listsRead: number;
/** Margin by partner, in basis points. */
let margins: Map<string, number>;

beforeEach(() => {
  // Entries stay fresh after the first check, however slow the machine is.
  vi.useFakeTimers({ toFake: ['performance'] });
  const packages = [newPackage('pkg_b'), newPackage('pkg_a')];
  const repository: Pick<CatalogRepository, 'listAll'> = { listAll: () => Promise.resolve(packages) };
  const changes: Pick<CatalogChangesRepository, 'getVersion'> = {
    getVersion: () => Promise.resolve({ version: 1, position: 1 }),
  };
  const findChanged = (partnerId: string): Promise<PriceList | null> => {
    listsRead++;
    const marginBps = margins.get(partnerId);
    const priced = { marginBps: marginBps ?? null, prices: {}, version: listsRead, updatedAt: AT };
    return Promise.resolve(marginBps === undefined ? null : priced);
  };
  const lists: Pick<PriceListsRepository, 'findChanged'> = { findChanged };
  const snapshots = new CatalogSnapshots(
    repository as CatalogRepository,
    changes as CatalogChangesRepository,
  );
  const cursors = new CursorCodec({ secretKeys: [{ id: 'k1', key: Buffer.alloc(32, 7) }] });
  pages = new CatalogPages();
  list = new CatalogList(new PartnerCatalogs(snapshots, lists as PriceListsRepository), cursors, pages);
  serialized = 0;
  listsRead = 0;
  margins = new Map();
});
afterEach(() => vi.useRealTimers());

/** Reads the first page. `note` pads it to the size that the test needs. */
async function readPage(scope: TenantScope, filters: CatalogFilters, cursor?: string, note?: string) {
  return list.list(scope, filters, { limit: 1, cursor }, ({ id, priceAmount }) => {
    serialized++;
    return { id, priceAmount, note };
  });
}

const FRANCE = { country: 'FR' };

describe('the cache of catalog pages', () => {
  it('serializes a page once for all partners with the same query', async () => {
    const first = await readPage(ANNA, FRANCE);
    expect((await readPage(BEN, FRANCE)).itemsJson).toBe(first.itemsJson);
    expect(serialized).toBe(1);
  });

  it('uses at most 32 MB, whatever limits callers choose, and keeps the pages in use (D43)', async () => {
    const note = 'x'.repeat(MEGABYTE);
    const live = Array.from({ length: 4 }, (_, i) => ({ partnerId: `ptn_${i}`, mode: 'live' }) as const);
    live.forEach(({ partnerId }, i) => margins.set(partnerId, i));
    await readPage(ANNA, FRANCE, undefined, note);
    for (let limit = 1; limit <= 50; limit++) {
      for (const scope of live) await list.list(scope, FRANCE, { limit, cursor: undefined }, () => note);
      await readPage(ANNA, FRANCE, undefined, note);
    }
    expect(pages.bytes).toBeLessThanOrEqual(32 * MEGABYTE);
    expect(serialized).toBe(1);
  });

  it("does not cache free-form filters, so one partner cannot evict another's pages", async () => {
    for (const filters of [{ maxPriceAmount: 500 }, { minDataBytes: 0 }, { updatedSince: AT }]) {
      serialized = 0;
      const [first, second] = [await readPage(ANNA, filters), await readPage(ANNA, filters)];
      expect(second).toEqual(first);
      expect(serialized, JSON.stringify(filters)).toBe(second.itemsJson.length > 2 ? 2 : 0);
    }
    expect(pages.bytes).toBe(0);
  });

  it('issues a separate cursor per partner and mode, identical on each call', async () => {
    const { nextCursor } = await readPage(ANNA, FRANCE);
    expect((await readPage(ANNA, FRANCE)).nextCursor).toBe(nextCursor);
    expect((await readPage(BEN, FRANCE)).nextCursor).not.toBe(nextCursor);
    expect((await readPage({ ...ANNA, mode: 'live' }, FRANCE)).nextCursor).not.toBe(nextCursor);
    expect((await readPage(ANNA, FRANCE, nextCursor!)).itemsJson.toString()).toContain('"pkg_a"');
    await expect(readPage(BEN, FRANCE, nextCursor!)).rejects.toMatchObject({ code: 'invalid_cursor' });
  });
});

describe('the catalog of many live partners', () => {
  const partners = Array.from(
    { length: 1_000 },
    (_, i) => ({ partnerId: `ptn_${i}`, mode: 'live' }) as const,
  );

  it('is cached once for all partners without their own prices', async () => {
    for (let round = 0; round < 3; round++) for (const scope of partners) await readPage(scope, FRANCE);
    expect([serialized, listsRead]).toEqual([1, partners.length]);
  });

  it('is priced for each partner with a price list, and stays in memory', async () => {
    partners.forEach(({ partnerId }, i) => margins.set(partnerId, 100 * i));
    for (let round = 0; round < 3; round++) {
      for (const [i, scope] of partners.entries()) {
        const { itemsJson } = await readPage(scope, FRANCE);
        expect(JSON.parse(itemsJson.toString())).toEqual([{ id: 'pkg_b', priceAmount: 100 + i }]);
      }
    }
    expect([serialized, listsRead]).toEqual([partners.length, partners.length]);
    const cheap = await readPage(partners[5]!, { maxPriceAmount: 104 });
    expect(cheap.itemsJson.toString()).toBe('[]');
    expect((await readPage(partners[5]!, { maxPriceAmount: 105 })).itemsJson.toString()).toContain('pkg_b');
  });
});
