import type { CatalogPackage, PackageNetwork, PackageType, Region } from '../package.js';
import type { SandboxCountry } from './country.js';
import { planPrice, planRetailPrice, planSlug, planTitle, type Plan } from './plan.js';

const BYTES_PER_GB = 1_000_000_000;

/** A place packages are sold for: one country, one region or the world. */
export interface Destination {
  /** The middle of the package ids: `fr`, `latin_america`, `global`. */
  readonly slug: string;
  readonly title: string;
  readonly type: PackageType;
  /** Set for `regional` destinations only. */
  readonly region: Region | null;
  /** By code ascending. */
  readonly countries: readonly SandboxCountry[];
  /** The partner's price of 1 GB for 7 days, in US cents; every other price is a percentage of it. */
  readonly oneGbCents: number;
}

/** The package that sells `plan` at `destination`. Its id and title are derived, so they cannot contradict it. */
export function packageFor(destination: Destination, plan: Plan): CatalogPackage {
  const price = planPrice(plan, destination.oneGbCents);
  return {
    id: `pkg_${destination.slug}_${planSlug(plan)}`,
    mode: 'sandbox',
    title: planTitle(destination.title, plan),
    type: destination.type,
    region: destination.region,
    coverage: destination.countries.map((country) => country.code),
    kind: plan.kind,
    dataBytes: plan.dataGb === null ? null : plan.dataGb * BYTES_PER_GB,
    unlimited: plan.unlimited,
    voiceMinutes: plan.voiceMinutes,
    smsCount: plan.smsCount,
    validityDays: plan.validityDays,
    activationPolicy: plan.activationPolicy,
    topupSupported: plan.topupSupported,
    networks: destination.countries.flatMap((country) => networksIn(country, destination.type)),
    speedPolicy: plan.speedPolicy,
    notes: null,
    price,
    costMicros: null,
    retailPrice: planRetailPrice(plan, price),
    available: plan.available,
  };
}

function networksIn(country: SandboxCountry, type: PackageType): PackageNetwork[] {
  // Multi-country packages roam on one steered network per country; a country package may use them all.
  const operators = type === 'country' ? country.operators : country.operators.slice(0, 1);
  return operators.map(({ name, generations }) => ({ country: country.code, operator: name, generations }));
}
