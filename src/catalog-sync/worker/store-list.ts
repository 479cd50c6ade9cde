import { Injectable } from '@nestjs/common';
import type { PackageList, PackagePage, LiveProvider } from '../../providers/index.js';
import type { WrittenOutcome } from '../catalog-sync.entity.js';
import { SyncOvertaken } from '../catalog-syncs.repository.js';
import { ListInProgress } from '../list-in-progress.js';
import { LiveCatalogRepository, type PackageSeller } from '../live-catalog.repository.js';
import { type LivePackage, type SalesTerms, toLivePackage } from '../live-packages.js';
import { type HeldSync, SyncStopped } from './held-sync.js';

/** A list that lost more than half of what is sold is a fault of the provider's, not a decision of its. */
const SMALLEST_SHARE = 0.5;
/** A dozen packages may well go at once. */
const ALWAYS_BELIEVED = 12;

/** The provider lists less than half of what is sold. */
export class CatalogShrank extends Error {
  constructor() {
    super('the wholesaler lists less than half of what is sold; nothing was withdrawn');
    this.name = 'CatalogShrank';
  }
}

/** A list ended before its end; `stored` says what was done with the part that came. */
export class ListIncomplete extends Error {
  constructor(
    readonly stored: WrittenOutcome,
    cause: unknown,
  ) {
    super('the list did not come to its end', { cause });
    this.name = 'ListIncomplete';
  }
}

/** A list, and the settings that packages are made with. */
export interface ListToStore {
  readonly liveProvider: LiveProvider;
  readonly list: PackageList;
  readonly pages: AsyncIterable<PackagePage['packages']>;
  readonly terms: SalesTerms;
}

/** Stores a provider's list as its pages arrive, each in a transaction of its own. */
@Injectable()
export class StoreList {
  constructor(private readonly catalog: LiveCatalogRepository) {}

  /**
   * What came is kept whatever happens to the rest; what is no longer listed is withdrawn when the whole list came.
   * @throws CatalogShrank; ListIncomplete when a page did not come; SyncOvertaken, SyncStopped
   */
  async everything(
    held: HeldSync,
    { liveProvider, list, pages, terms }: ListToStore,
  ): Promise<WrittenOutcome> {
    const seller = sellerOf(liveProvider);
    const isOfList = ({ kind }: { kind: LivePackage['item']['kind'] }) => list.kinds.includes(kind);
    const sold = (await held.write((tx) => this.catalog.listAvailable(tx, seller.provider))).filter(isOfList);
    const progress = new ListInProgress(sold);
    let changed = 0;
    const store = async (packages: readonly LivePackage[]) => {
      if (packages.length > 0) changed += await held.write((tx) => this.catalog.write(tx, seller, packages));
    };
    try {
      for await (const page of pages) await store(progress.take(toLivePackages(seller, page, terms)));
    } catch (error) {
      const isOver = error instanceof SyncOvertaken || error instanceof SyncStopped;
      if (isOver || progress.ids.length === 0) throw error;
      await store(progress.settle());
      throw new ListIncomplete({ listed: progress.ids.length, changed, withdrawn: 0 }, error);
    }
    if (sold.length > ALWAYS_BELIEVED && progress.offeredCount < sold.length * SMALLEST_SHARE) {
      await store(progress.settle());
      throw new CatalogShrank();
    }
    const { ids } = progress;
    const rest = progress.finish();
    const end = await held.write(async (tx) => ({
      changed: await this.catalog.write(tx, seller, rest),
      withdrawn: await this.catalog.withdrawOthers(tx, seller.provider, { kinds: list.kinds, ids }),
    }));
    return { listed: ids.length, changed: changed + end.changed, withdrawn: end.withdrawn };
  }

  /** Brings top-ups that the catalogue has up to date, and leaves alone whether they are sold; answers how many. */
  async prices(held: HeldSync, { liveProvider, pages, terms }: ListToStore): Promise<number> {
    const seller = sellerOf(liveProvider);
    let changed = 0;
    for await (const page of pages) {
      const offered = toLivePackages(seller, page, terms);
      changed += await held.write(async (tx) => {
        const known = await this.catalog.listKnownTopups(tx, seller.provider);
        const packages = offered.flatMap((each) => {
          const available = known.get(each.item.id);
          return available === undefined ? [] : [{ ...each, item: { ...each.item, available } }];
        });
        return this.catalog.write(tx, seller, packages);
      });
    }
    return changed;
  }
}

export function sellerOf({ name, listTopupsFor }: LiveProvider): PackageSeller {
  return { provider: name, fits: listTopupsFor === null ? 'coverage' : 'list' };
}

export function toLivePackages(
  { provider }: PackageSeller,
  page: PackagePage['packages'],
  terms: SalesTerms,
): readonly LivePackage[] {
  return page.map((each) => toLivePackage(provider, each, terms)).filter((each) => each !== null);
}
