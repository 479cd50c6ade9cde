import { Injectable } from '@nestjs/common';
import { compareText } from '../common/compare-text.js';
import type { Money } from '../common/money.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { type CatalogPage, CatalogPages } from './catalog-pages.js';
import { type PartnerCatalog, PartnerCatalogs } from './partner-catalogs.js';
import { REGION_TITLES, REGIONS } from './package.js';

export const DESTINATION_KINDS = ['country', 'region', 'global'] as const;
export type DestinationKind = (typeof DESTINATION_KINDS)[number];

/** A place with packages on sale. */
export interface Destination {
  /** ISO 3166-1 alpha-2, the region, or `global`. */
  readonly code: string;
  readonly kind: DestinationKind;
  /** In English. */
  readonly name: string;
  /** Base packages on sale that work there. */
  readonly packages: number;
  /** The lowest price in the currency that most of these packages have. */
  readonly priceFrom: Money;
  readonly hasUnlimited: boolean;
  readonly hasDaily: boolean;
}

/** GET /v1/destinations: the places where a partner's base packages on sale work, cached like the catalog's pages. */
@Injectable()
export class Destinations {
  constructor(
    private readonly catalogs: PartnerCatalogs,
    private readonly pages: CatalogPages,
  ) {}

  async list(scope: TenantScope, toJson: (place: Destination) => unknown): Promise<CatalogPage> {
    const catalog = await this.catalogs.get(scope);
    return this.pages.get(catalog, ['destinations'], true, () => ({
      itemsJson: Buffer.from(JSON.stringify(destinationsOf(catalog).map(toJson))),
    }));
  }
}

/**
 * A country counts every package that covers it, a region those of that region, and `global` the global ones: as many
 * as GET /v1/catalog lists for `country`, `region` and `type=global`. Countries first, then regions, each by code.
 */
export function destinationsOf(catalog: PartnerCatalog): readonly Destination[] {
  const [countries, regions, world] = [new Tallies(), new Tallies(), new Tallies()];
  for (const [index, item] of catalog.packages.entries()) {
    if (item.kind !== 'base' || !item.available) continue;
    const { plan } = item.terms;
    const counted = { price: catalog.priceAt(index), plan };
    for (const country of new Set(item.coverage)) countries.add(country, counted);
    if (item.region) regions.add(item.region, counted);
    if (item.type === 'global') world.add('global', counted);
  }
  return [
    ...countries.places('country', (code) => COUNTRY_NAMES.of(code) ?? code),
    ...regions.places('region', (code) => REGION_NAMES.get(code) ?? code),
    ...world.places('global', () => 'Global'),
  ];
}

const COUNTRY_NAMES = new Intl.DisplayNames(['en'], { type: 'region' });
const REGION_NAMES = new Map<string, string>(REGIONS.map((region) => [region, REGION_TITLES[region]]));

interface CountedPackage {
  readonly price: Money;
  readonly plan: string;
}

class Tallies {
  private readonly tallies = new Map<string, Tally>();

  add(code: string, counted: CountedPackage): void {
    let tally = this.tallies.get(code);
    if (!tally) this.tallies.set(code, (tally = new Tally()));
    tally.add(counted);
  }

  places(kind: DestinationKind, nameOf: (code: string) => string): Destination[] {
    return [...this.tallies]
      .sort(([a], [b]) => compareText(a, b))
      .map(([code, tally]) => ({ code, kind, name: nameOf(code), ...tally.result() }));
  }
}

class Tally {
  private packages = 0;
  private hasUnlimited = false;
  private hasDaily = false;
  private readonly currencies = new Map<string, { count: number; lowest: number }>();

  add({ price: { amount, currency }, plan }: CountedPackage): void {
    this.packages++;
    this.hasUnlimited ||= plan === 'unlimited';
    this.hasDaily ||= plan === 'daily';
    const prices = this.currencies.get(currency);
    if (!prices) this.currencies.set(currency, { count: 1, lowest: amount });
    else {
      prices.count++;
      prices.lowest = Math.min(prices.lowest, amount);
    }
  }

  /** If several currencies are equally frequent, the price is in the first of them by code. */
  result(): Omit<Destination, 'code' | 'kind' | 'name'> {
    const { packages, hasUnlimited, hasDaily } = this;
    const byCount = [...this.currencies].sort(
      ([a, one], [b, other]) => other.count - one.count || compareText(a, b),
    );
    const [currency, { lowest }] = byCount[0]!;
    return { packages, priceFrom: { amount: lowest, currency }, hasUnlimited, hasDaily };
  }
}
