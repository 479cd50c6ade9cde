import { lookOf, type PackageLook } from '../catalog/index.js';
import type { LivePackage } from './live-packages.js';

/**
 * A provider's list while its pages arrive: says what of each page is stored at once, and what is stored at its end.
 * What it calls unavailable is kept for the end: only a whole list withdraws anything.
 */
export class ListInProgress {
  private readonly listed = new Map<string, LivePackage>();
  /** As stored, by id. */
  private readonly stored = new Map<string, boolean>();
  private looks = new LookAlikes();
  private refused = 0;

  /** @param sold packages of these kinds that are sold now */
  constructor(sold: readonly PricedLook[]) {
    for (const item of sold) this.looks.put(item);
  }

  /** What is offered in the list so far, those included that a cheaper one of the same look keeps from being sold. */
  get offeredCount(): number {
    return [...this.listed.values()].filter(({ item }) => item.available).length;
  }

  get ids(): readonly string[] {
    return [...this.listed.keys()];
  }

  /** Takes a page in; answers what of it is to be stored now. */
  take(page: readonly LivePackage[]): readonly LivePackage[] {
    for (const each of page) {
      this.listed.set(each.item.id, each);
      if (each.item.available) this.looks.put(toLook(each));
    }
    return this.toStore(page.filter(({ item }) => item.available));
  }

  /** Whether most of what came was left out. */
  get isMostlyRefused(): boolean {
    return this.refused > this.listed.size;
  }

  /** These cannot be stored: as if the provider did not list them. */
  leaveOut(ids: readonly string[]): void {
    this.refused += ids.length;
    for (const id of ids) {
      this.listed.delete(id);
      this.stored.delete(id);
      this.looks.drop(id);
    }
  }

  /** The list is whole: what still differs from what is stored. */
  finish(): readonly LivePackage[] {
    const listed = [...this.listed.values()];
    this.looks = new LookAlikes();
    for (const each of listed) if (each.item.available) this.looks.put(toLook(each));
    return this.toStore(listed);
  }

  /** The list ended early: of what look alike, the cheapest that are known. */
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

/** What is sold at a price under a look. */
interface PricedLook extends PackageLook {
  readonly id: string;
  readonly priceAmount: number;
  readonly currency: string;
}

/**
 * Packages of one provider by what they look like. Of those that look the same at several prices only the cheapest
 * are sold: a partner could not say why the others cost more.
 */
export class LookAlikes {
  private readonly looks = new Map<string, string>();
  private readonly prices = new Map<string, Map<string, number>>();

  /** Takes the package in, or its new look and price. */
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

  /** Whether nothing that looks the same is cheaper. */
  isCheapest({ id, priceAmount }: Pick<PricedLook, 'id' | 'priceAmount'>): boolean {
    const group = this.prices.get(this.looks.get(id) ?? '') ?? new Map<string, number>();
    return Math.min(...group.values()) >= priceAmount;
  }
}
