import type { CatalogPackage } from '../catalog/index.js';

/** What a partner can choose a package by, its price apart. */
export type PackageLook = Pick<
  CatalogPackage,
  | 'title'
  | 'type'
  | 'region'
  | 'coverage'
  | 'kind'
  | 'dataBytes'
  | 'unlimited'
  | 'voiceMinutes'
  | 'smsCount'
  | 'validityDays'
  | 'activationPolicy'
  | 'topupSupported'
  | 'networks'
  | 'speedPolicy'
  | 'notes'
>;

/** What is sold at a price under a look. */
export interface PricedLook extends PackageLook {
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

function lookOf(item: PricedLook): string {
  return JSON.stringify([
    [item.title, item.type, item.region, item.coverage, item.kind],
    [item.dataBytes, item.unlimited, item.voiceMinutes, item.smsCount, item.validityDays],
    [item.activationPolicy, item.topupSupported, item.speedPolicy, item.notes, item.currency],
    item.networks.map(({ country, operator, generations }) => [country, operator, generations]),
  ]);
}
