import { lookOf, type PackageLook } from '../catalog/index.js';
import type { LivePackage } from './live-packages.js';

/**
 * A provider's list while its pages arrive: decides which packages of each page are stored at once and which at the
 * end. Packages marked unavailable wait for the end, because only a complete list withdraws anything.
 */
export class ListInProgress {
  private readonly listed = new Map<string, LivePackage>();
  /** Stored packages by id. */
  private readonly stored = new Map<string, boolean>();
  private looks = new LookAlikes();
  private refused = 0;

  /** @param sold packages of the list's kinds that are currently sold */
  constructor(sold: readonly PricedLook[]) {
    for (const item of sold) this.looks.put(item);
  }

  /** Number of offered packages so far, including those withheld because a cheaper one looks the same. */
  get offeredCount(): number {
    return [...this.listed.values()].filter(({ item }) => item.available).length;
  }

  get ids(): readonly string[] {
    return [...this.listed.keys()];
  }

  /** Adds a page and returns the packages to store now. */
  take(page: readonly LivePackage[]): readonly LivePackage[] {
    for (const each of page) {
      this.listed.set(each.item.id, each);
      if (each.item.available) this.looks.put(toLook(each));
    }
    return this.toStore(page.filter(({ item }) => item.available));
  }

  /** Whether most packages were rejected. */
  get isMostlyRefused(): boolean {
    return this.refused > this.listed.size;
  }

  /** Treats packages that cannot be stored as if the provider did not list them. */
  leaveOut(ids: readonly string[]): void {
    this.refused += ids.length;
    for (const id of ids) {
      this.listed.delete(id);
      this.stored.delete(id);
      this.looks.drop(id);
    }
  }

  /** Ends a complete list and returns the packages that still differ from the stored ones. */
  finish(): readonly LivePackage[] {
    const listed = [...this.listed.values()];
    this.looks = new LookAlikes();
    for (const each of listed) if (each.item.available) this.looks.put(toLook(each));
    return this.toStore(listed);
  }

  /** Ends an incomplete list and returns the cheapest known packages among those that look the same. */
  settle(): readonly LivePackage[] {
    return this.toStore([...this.listed.values()].filter(({ item }) => item.available));
  }

  private toStore(packages: readonly LivePackage[]): readonly LivePackage[] {
    return packages.flatMap((each) => {
      const { id } = each.item;
      const available = each.item.available && this.looks.isCheapest(toLook(each));
      if (this.stored.get(id) === available) return [];
      this.stored.set(id, available);
      return [{ ...each, item: { ...each.item, available } }];
    });
  }
}

function toLook({ item }: LivePackage): PricedLook {
  return { ...item, priceAmount: item.price.amount, currency: item.price.currency };
}

/** A package's look and price. */
interface PricedLook extends PackageLook {
  readonly id: string;
  readonly priceAmount: number;
  readonly currency: string;
}

/**
 * Groups one provider's packages by their look. If several look the same, only the cheapest is sold: a partner could
 * not explain why the others cost more.
 */
export class LookAlikes {
  private readonly looks = new Map<string, string>();
  private readonly prices = new Map<string, Map<string, number>>();

  /** Adds the package, or updates its look and price. */
  put(item: PricedLook): void {
    this.drop(item.id);
    const look = lookOf(item);
    this.looks.set(item.id, look);
    const group = this.prices.get(look) ?? new Map<string, number>();
    this.prices.set(look, group.set(item.id, item.priceAmount));
  }

  drop(id: string): void {
    const look = this.looks.get(id);
    if (look === undefined) return;
    this.looks.delete(id);
    this.prices.get(look)?.delete(id);
  }

  /** Whether no package that looks the same is cheaper. */
  isCheapest({ id, priceAmount }: Pick<PricedLook, 'id' | 'priceAmount'>): boolean {
    const group = this.prices.get(this.looks.get(id) ?? '') ?? new Map<string, number>();
    return Math.min(...group.values()) >= priceAmount;
  }
}
