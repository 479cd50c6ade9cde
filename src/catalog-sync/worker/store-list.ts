import { Injectable } from '@nestjs/common';
import type { Tx } from '../../infra/database/index.js';
import type { PackageList, PackagePage, LiveProvider } from '../../providers/index.js';
import type { WrittenOutcome } from '../catalog-sync.entity.js';
import { SyncOvertaken } from '../catalog-syncs.repository.js';
import { ListInProgress } from '../list-in-progress.js';
import { LiveCatalogRepository, type PackageSeller } from '../live-catalog.repository.js';
import { type LivePackage, type SalesTerms, toLivePackage } from '../live-packages.js';
import { type HeldSync, SyncStopped } from './held-sync.js';
import { StorePackages } from './store-packages.js';

/** A list with less than this share of the packages on sale counts as a provider's error, not its decision. */
const SMALLEST_SHARE = 0.5;
/** Up to this many packages on sale, any list is believed: a dozen packages may well disappear at once. */
const ALWAYS_BELIEVED = 12;

/** The provider lists less than half of the sold packages, or most of its list cannot be stored. */
export class CatalogShrank extends Error {
  constructor() {
    super(
      'the wholesaler lists fewer than half of the packages on sale in a usable form; none was withdrawn',
    );
    this.name = 'CatalogShrank';
  }
}

/** A list ended early; `stored` says what happened to the part that arrived. */
export class ListIncomplete extends Error {
  constructor(
    readonly stored: WrittenOutcome,
    cause: unknown,
  ) {
    super('the list is incomplete', { cause });
    this.name = 'ListIncomplete';
  }
}

/** A list, and the settings for its packages. */
export interface ListToStore {
  readonly liveProvider: LiveProvider;
  readonly list: PackageList;
  readonly pages: AsyncIterable<PackagePage['packages']>;
  readonly terms: SalesTerms;
}

/** Stores a provider's list page by page, one transaction per page unless a package is refused. */
@Injectable()
export class StoreList {
  constructor(
    private readonly catalog: LiveCatalogRepository,
    private readonly packages: StorePackages,
  ) {}

  /**
   * Keeps the pages that arrived, whatever happens to the rest. After a complete list, packages that are no longer
   * listed are withdrawn, and so are those that cannot be stored, because their cost is unknown. If that is most of the
   * list, it counts as shrunk.
   * @throws CatalogShrank; ListIncomplete when a page did not arrive; SyncOvertaken, SyncStopped
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
      const stored = await this.packages.store(seller, packages, (some) =>
        held.write((tx) => this.catalog.write(tx, seller, some)),
      );
      changed += stored.changed;
      progress.leaveOut(stored.refused);
    };
    try {
      for await (const page of pages) await store(progress.take(toLivePackages(seller, page, terms)));
    } catch (error) {
      const isOver = error instanceof SyncOvertaken || error instanceof SyncStopped;
      if (isOver || progress.ids.length === 0) throw error;
      await store(progress.settle());
      throw new ListIncomplete({ listed: progress.ids.length, changed, withdrawn: 0 }, error);
    }
    if (!isBelieved(progress, sold.length)) {
      await store(progress.settle());
      throw new CatalogShrank();
    }
    await store(progress.finish());
    const { ids } = progress;
    const withdrawn = await held.write((tx) =>
      this.catalog.withdrawOthers(tx, seller.provider, { kinds: list.kinds, ids }),
    );
    return { listed: ids.length, changed, withdrawn };
  }

  /** Updates the prices of known top-ups without changing whether they are sold; returns their number. */
  async prices(held: HeldSync, { liveProvider, pages, terms }: ListToStore): Promise<number> {
    const seller = sellerOf(liveProvider);
    let changed = 0;
    for await (const page of pages) {
      const offered = toLivePackages(seller, page, terms);
      const stored = await this.packages.store(seller, offered, (some) =>
        held.write((tx) => this.writeKnown(tx, seller, some)),
      );
      changed += stored.changed;
    }
    return changed;
  }

  private async writeKnown(tx: Tx, seller: PackageSeller, offered: readonly LivePackage[]): Promise<number> {
    const known = await this.catalog.listKnownTopups(tx, seller.provider);
    const packages = offered.flatMap((each) => {
      const available = known.get(each.item.id);
      return available === undefined ? [] : [{ ...each, item: { ...each.item, available } }];
    });
    return this.catalog.write(tx, seller, packages);
  }
}

function isBelieved(progress: ListInProgress, sold: number): boolean {
  if (progress.isMostlyRefused) return false;
  return sold <= ALWAYS_BELIEVED || progress.offeredCount >= sold * SMALLEST_SHARE;
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
