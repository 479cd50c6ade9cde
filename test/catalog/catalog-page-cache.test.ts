import { beforeEach, describe, expect, it } from 'vitest';
import { CatalogList } from '../../src/catalog/catalog-list.js';
import type { CatalogRepository } from '../../src/catalog/catalog.repository.js';
import { PackageEntity } from '../../src/catalog/package.entity.js';
import { CatalogSnapshots, PartnerCatalogs } from '../../src/catalog/partner-catalogs.js';
import type { PriceListsRepository } from '../../src/catalog/price-lists.repository.js';
import type { TenantScope } from '../../src/common/tenant-scope.js';
import { CursorCodec } from '../../src/infra/crypto/index.js';

const PAGES_KEPT = 500;
const ANNA: TenantScope = { partnerId: 'ptn_anna', mode: 'sandbox' };
const BEN: TenantScope = { partnerId: 'ptn_ben', mode: 'sandbox' };

function newPackage(id: string): PackageEntity {
  const at = new Date('2026-11-21T10:00:00Z');
  return Object.assign(new PackageEntity(), { id, priceAmount: 0, createdAt: at, updatedAt: at });
}

let list: CatalogList;
let serialized: number;

beforeEach(() => {
  const packages = [newPackage('pkg_b'), newPackage('pkg_a')];
  const repository: Pick<CatalogRepository, 'getVersion' | 'listAll'> = {
    getVersion: () => Promise.resolve(1),
    listAll: () => Promise.resolve(packages),
  };
  const lists: Pick<PriceListsRepository, 'find'> = { find: () => Promise.resolve(null) };
  const snapshots = new CatalogSnapshots(repository as CatalogRepository);
  const cursors = new CursorCodec({ secretKeys: [{ id: 'k1', key: Buffer.alloc(32, 7) }] });
  list = new CatalogList(new PartnerCatalogs(snapshots, lists as PriceListsRepository), cursors);
  serialized = 0;
});

/** The first page of packages of at most this price; each limit of the price is a query of its own. */
async function readPage(scope: TenantScope, maxPriceAmount: number, cursor?: string) {
  return list.list(scope, { maxPriceAmount }, { limit: 1, cursor }, ({ id }) => {
    serialized++;
    return { id };
  });
}

describe('the pages of a catalogue in memory', () => {
  it('are serialized once for every partner that asks the same', async () => {
    const first = await readPage(ANNA, 1);
    expect((await readPage(BEN, 1)).itemsJson).toBe(first.itemsJson);
    expect(serialized).toBe(1);
  });

  it('make room for one more by the one used longest ago, and keep those in use', async () => {
    await readPage(ANNA, 0);
    for (let price = 1; price <= PAGES_KEPT; price++) {
      await readPage(ANNA, price);
      await readPage(ANNA, 0);
    }
    expect(serialized).toBe(PAGES_KEPT + 1);
    await readPage(ANNA, PAGES_KEPT);
    expect(serialized).toBe(PAGES_KEPT + 1);
    await readPage(ANNA, 1);
    expect(serialized).toBe(PAGES_KEPT + 2);
  });

  it('give each partner and mode a cursor of its own, the same at each call', async () => {
    const { nextCursor } = await readPage(ANNA, 1);
    expect((await readPage(ANNA, 1)).nextCursor).toBe(nextCursor);
    expect((await readPage(BEN, 1)).nextCursor).not.toBe(nextCursor);
    expect((await readPage({ ...ANNA, mode: 'live' }, 1)).nextCursor).not.toBe(nextCursor);
    expect((await readPage(ANNA, 1, nextCursor!)).itemsJson.toString()).toBe('[{"id":"pkg_a"}]');
    await expect(readPage(BEN, 1, nextCursor!)).rejects.toMatchObject({ code: 'invalid_cursor' });
  });
});
