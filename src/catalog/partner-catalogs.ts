import { Injectable } from '@nestjs/common';
import type { Mode } from '../common/mode.js';
import { type CatalogSnapshot, CatalogSnapshots } from './catalog-snapshots.js';
import { atPartnerPrice, type PriceList } from './price-list.js';
import { PriceListsRepository } from './price-lists.repository.js';

/** Whose catalogue is read. */
export interface CatalogReader {
  readonly partnerId: string;
  readonly mode: Mode;
}

interface Held {
  readonly list: PriceList | null;
  readonly checkedAtMs: number;
  /** The catalogue that `snapshot` was made of. */
  readonly base: CatalogSnapshot;
  readonly snapshot: CatalogSnapshot;
}

/** A list may lag the table by this much; orders read the table itself. */
const CHECK_INTERVAL_MS = 1_000;
/** Partners with a price list of their own that are held; beyond it all are made again. */
const MAX_HELD = 200;

/** The catalogue as one partner sees it: in Live at its own prices, in Sandbox the same for all. */
@Injectable()
export class PartnerCatalogs {
  private readonly held = new Map<string, Held>();

  constructor(
    private readonly snapshots: CatalogSnapshots,
    private readonly lists: PriceListsRepository,
  ) {}

  /** Synchronous while it is fresh. */
  get(reader: CatalogReader): CatalogSnapshot | Promise<CatalogSnapshot> {
    const base = this.snapshots.get(reader.mode);
    if (reader.mode === 'sandbox') return base;
    const held = this.held.get(reader.partnerId);
    if (held && held.base === base && performance.now() - held.checkedAtMs < CHECK_INTERVAL_MS) {
      return held.snapshot;
    }
    return this.refresh(reader.partnerId, base);
  }

  private async refresh(
    partnerId: string,
    current: CatalogSnapshot | Promise<CatalogSnapshot>,
  ): Promise<CatalogSnapshot> {
    const [base, list] = await Promise.all([current, this.lists.find(partnerId)]);
    const held = this.held.get(partnerId);
    const isSame = held?.base === base && held.list?.version === list?.version;
    const snapshot = isSame ? held.snapshot : priced(base, list);
    if (this.held.size >= MAX_HELD) this.held.clear();
    this.held.set(partnerId, { list, base, snapshot, checkedAtMs: performance.now() });
    return snapshot;
  }
}

function priced(base: CatalogSnapshot, list: PriceList | null): CatalogSnapshot {
  if (list === null) return base;
  return {
    version: `${base.version}.${list.version}`,
    packages: base.packages.map((item) => atPartnerPrice(item, list)),
    pages: new Map(),
  };
}
