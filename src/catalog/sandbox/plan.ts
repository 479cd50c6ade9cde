import type { Money } from '../../common/money.js';
import type {
  ActivationPolicy,
  CatalogPackage,
  PackageKind,
  PackageNetwork,
  PackageType,
  Region,
} from '../package.js';
import {
  type DataUnit,
  type FairUse,
  type PackageTerms,
  UNIT_BYTES,
  UNSTATED_TERMS,
} from '../package-terms.js';
import type { SandboxCountry } from './countries.js';

/** A package without its destination. Every destination combines some plans with its own price level. */
export interface Plan {
  readonly kind: PackageKind;
  /** Whole gigabytes of `dataUnit`; null when unlimited or when the plan adds days only. */
  readonly dataGb: number | null;
  readonly unlimited: boolean;
  readonly voiceMinutes: number | null;
  readonly smsCount: number | null;
  readonly validityDays: number;
  /** Set for a pass sold by the day, with `dataGb` per day. */
  readonly maxDays: number | null;
  readonly activationPolicy: ActivationPolicy;
  readonly topupSupported: boolean;
  /** Price in percent of the destination's price of 1 GB for 7 days. */
  readonly pricePercent: number;
  /** False when no retail price is suggested: partners must handle null. */
  readonly suggestsRetailPrice: boolean;
  readonly available: boolean;
  /** Set as on live unlimited plans; null for plans that are never throttled. */
  readonly speedPolicy: string | null;
  readonly fairUse: FairUse | null;
  /** `binary`: gigabytes of 2^30 bytes, as one of the live wholesalers counts. */
  readonly dataUnit: DataUnit;
  /** Country where the traffic reaches the internet; null when the wholesaler does not say. */
  readonly exitCountry: string | null;
}

const BASE = {
  kind: 'base',
  dataGb: null,
  unlimited: false,
  maxDays: null,
  voiceMinutes: null,
  smsCount: null,
  activationPolicy: 'on_first_use',
  topupSupported: true,
  suggestsRetailPrice: true,
  available: true,
  speedPolicy: null,
  fairUse: null,
  dataUnit: 'decimal',
  exitCountry: null,
} as const;

// A top-up extends an eSIM that is already running: there is nothing to install or to wait for.
const TOPUP = { ...BASE, kind: 'topup', activationPolicy: 'on_purchase', topupSupported: false } as const;

/** A data plan; its validity starts with the first connection to a visited network. */
export function dataPlan(dataGb: number, validityDays: number, pricePercent: number): Plan {
  return { ...BASE, dataGb, validityDays, pricePercent };
}

/** Gigabytes a day at full speed of most unlimited plans. */
const FULL_SPEED_GB = 2;

/**
 * Unlimited data for a fixed number of days. Flat-rate plans start at installation, so that they cannot be stockpiled.
 */
export function unlimitedPlan(
  validityDays: number,
  pricePercent: number,
  fullSpeedGb: number = FULL_SPEED_GB,
): Plan {
  return {
    ...BASE,
    unlimited: true,
    validityDays,
    pricePercent,
    activationPolicy: 'on_install',
    ...slowerAfter(fullSpeedGb),
  };
}

function slowerAfter(dataGb: number): Pick<Plan, 'speedPolicy' | 'fairUse'> {
  const fullSpeedBytes = dataGb * UNIT_BYTES.decimal.gb;
  return {
    speedPolicy: `At most 1 Mbps after ${dataGb} GB a day, until midnight UTC.`,
    fairUse: { fullSpeedBytes, per: 'day', then: 'slower', kbps: 1_000, resets: 'midnight' },
  };
}

/** Unlimited data for one day. Not extendable: the customer buys another pass. */
export function dayPass(pricePercent: number): Plan {
  return { ...BASE, unlimited: true, validityDays: 1, pricePercent, topupSupported: false };
}

/** Data per day for a number of days that the buyer chooses, and slower data for the rest of each day. */
export function dailyPass(dataGb: number, pricePercent: number): Plan {
  return { ...BASE, ...perDay(dataGb), pricePercent };
}

/** A top-up that adds days to a daily pass. */
export function dailyTopup(dataGb: number, pricePercent: number): Plan {
  return { ...TOPUP, ...perDay(dataGb), pricePercent, suggestsRetailPrice: false };
}

function perDay(
  dataGb: number,
): Pick<Plan, 'dataGb' | 'validityDays' | 'maxDays' | 'speedPolicy' | 'fairUse'> {
  return { dataGb, validityDays: 1, maxDays: 30, ...slowerAfter(dataGb) };
}

/** Data with a phone number. The number is rented from the purchase on, so the validity starts then. */
export function voicePlan(
  dataGb: number,
  voiceMinutes: number,
  smsCount: number,
  validityDays: number,
  pricePercent: number,
): Plan {
  return {
    ...BASE,
    dataGb,
    voiceMinutes,
    smsCount,
    validityDays,
    pricePercent,
    activationPolicy: 'on_purchase',
  };
}

/** A top-up that adds data and days. */
export function dataTopup(dataGb: number, validityDays: number, pricePercent: number): Plan {
  return { ...TOPUP, dataGb, validityDays, pricePercent };
}

/** A top-up that adds days only: `dataBytes` is null although it is not unlimited. */
export function daysTopup(validityDays: number, pricePercent: number): Plan {
  return { ...TOPUP, validityDays, pricePercent, suggestsRetailPrice: false };
}

/** The plan in gigabytes of 2^30 bytes. */
export function binary(plan: Plan): Plan {
  return { ...plan, dataUnit: 'binary' };
}

/** The plan with a stated exit country, which changes its price. */
export function exitingIn(exitCountry: string, plan: Plan): Plan {
  return { ...plan, exitCountry };
}

/** A plan that is no longer sold. It stays listed, because eSIMs sold with it continue. */
export function withdrawn(plan: Plan): Plan {
  return { ...plan, available: false };
}

/** End of a package id that identifies the plan at its destination: `topup_1gb_7d`. */
function planSlug(plan: Plan): string {
  return [
    ...(plan.kind === 'topup' ? ['topup'] : []),
    ...(plan.voiceMinutes === null ? [] : ['voice']),
    ...(plan.unlimited ? ['unlimited'] : []),
    ...(plan.dataGb === null ? [] : [`${plan.dataGb}${plan.dataUnit === 'binary' ? 'gib' : 'gb'}`]),
    plan.maxDays === null ? `${plan.validityDays}d` : 'daily',
    ...(plan.unlimited ? fullSpeedSlug(plan) : []),
    ...(plan.exitCountry === null ? [] : [`exit_${plan.exitCountry.toLowerCase()}`]),
  ].join('_');
}

/** Distinguishes unlimited plans of the same days: `after_5gb`. */
function fullSpeedSlug({ fairUse }: Plan): string[] {
  const gb = (fairUse?.fullSpeedBytes ?? 0) / UNIT_BYTES.decimal.gb;
  return gb === 0 || gb === FULL_SPEED_GB ? [] : [`after_${gb}gb`];
}

/** The package's title: `France 1 GB, 7 days`. */
function planTitle(destination: string, plan: Plan): string {
  const days = plan.validityDays === 1 ? '1 day' : `${plan.validityDays} days`;
  const perDay = plan.maxDays === null ? '' : ' a day';
  const parts = [
    ...(plan.unlimited ? ['unlimited data'] : []),
    ...(plan.dataGb === null ? [] : [`${plan.dataGb} GB${perDay}`]),
    ...(plan.voiceMinutes === null ? [] : [`${plan.voiceMinutes} minutes`]),
    ...(plan.smsCount === null ? [] : [`${plan.smsCount} SMS`]),
  ];
  if (parts.length === 0) return `${destination} top-up: ${days} longer`;
  return `${destination}${plan.kind === 'topup' ? ' top-up:' : ''} ${[...parts, ...(plan.maxDays === null ? [days] : [])].join(', ')}`;
}

/**
 * The partner's price in US cents.
 *
 * @param oneGbCents the destination's price of 1 GB for 7 days, in cents
 */
function planPrice(plan: Plan, oneGbCents: number): Money {
  // Steps of 5 cents, as on a real price list.
  return { amount: Math.round((oneGbCents * plan.pricePercent) / 500) * 5, currency: 'USD' };
}

/** The suggested retail price: about 1.6 times the partner's price, ending in 9 cents; null when none is suggested. */
function planRetailPrice(plan: Plan, price: Money): Money | null {
  if (!plan.suggestsRetailPrice) return null;
  return { amount: Math.ceil((price.amount * 16) / 100) * 10 - 1, currency: price.currency };
}

/** A sales destination: one country, one region or the world. */
export interface Destination {
  /** The middle of the package ids: `fr`, `latin_america`, `global`. */
  readonly slug: string;
  readonly title: string;
  readonly type: PackageType;
  /** Set for `regional` destinations only. */
  readonly region: Region | null;
  /** Sorted by code. */
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
    dataBytes: plan.dataGb === null ? null : plan.dataGb * UNIT_BYTES[plan.dataUnit].gb,
    unlimited: plan.unlimited,
    voiceMinutes: plan.voiceMinutes,
    smsCount: plan.smsCount,
    validityDays: plan.validityDays,
    activationPolicy: plan.activationPolicy,
    topupSupported: plan.topupSupported,
    networks: destination.countries.flatMap((country) => networksIn(country, destination.type)),
    speedPolicy: plan.speedPolicy,
    notes: null,
    terms: termsOf(destination, plan),
    price,
    costMicros: null,
    retailPrice: planRetailPrice(plan, price),
    available: plan.available,
  };
}

function termsOf(destination: Destination, plan: Plan): PackageTerms {
  return {
    ...UNSTATED_TERMS,
    dataUnit: plan.dataUnit,
    exitCountries: plan.exitCountry === null ? null : [plan.exitCountry],
    plan: plan.unlimited ? 'unlimited' : plan.maxDays === null ? 'total' : 'daily',
    maxDays: plan.maxDays,
    fairUse: plan.fairUse,
    topup: plan.topupSupported
      ? { kinds: plan.maxDays === null ? ['data', 'days'] : ['days'], behavior: 'adds', maxCount: null }
      : UNSTATED_TERMS.topup,
    regionName: destination.type === 'regional' ? destination.title : null,
  };
}

function networksIn(country: SandboxCountry, type: PackageType): PackageNetwork[] {
  // Packages for several countries use one steered network per country; a country package may use them all.
  const operators = type === 'country' ? country.operators : country.operators.slice(0, 1);
  return operators.map(({ name, generations }) => ({ country: country.code, operator: name, generations }));
}
