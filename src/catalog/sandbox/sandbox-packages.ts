import { Injectable } from '@nestjs/common';
import { Transactions } from '../../infra/database/index.js';
import { CatalogRepository } from '../catalog.repository.js';
import { type CatalogPackage, type Region, REGION_TITLES, REGIONS } from '../package.js';
import { UNIT_BYTES } from '../package-terms.js';
import { type PriceTier, SANDBOX_COUNTRIES, type SandboxCountry } from './countries.js';
import {
  binary,
  dailyPass,
  dailyTopup,
  dataPlan,
  dataTopup,
  dayPass,
  daysTopup,
  type Destination,
  exitingIn,
  packageFor,
  type Plan,
  unlimitedPlan,
  voicePlan,
  withdrawn,
} from './plan.js';

const ONE_GB_CENTS_BY_TIER: Readonly<Record<PriceTier, number>> = {
  budget: 110,
  standard: 190,
  premium: 340,
  remote: 620,
};

const ONE_GB_CENTS_BY_REGION: Readonly<Record<Region, number>> = {
  africa: 420,
  asia: 200,
  balkans: 180,
  caribbean: 480,
  europe: 150,
  'latin-america': 320,
  'middle-east': 300,
  'north-america': 220,
  oceania: 360,
};

const ONE_GB_CENTS_GLOBAL = 400;

const POPULAR_COUNTRIES: ReadonlySet<string> = new Set(
  'AE AT AU BR CA CH CN DE EG ES FR GB GR HK HR ID IN IT JP KR MA MX MY NL PT SG TH TR US VN ZA'.split(' '),
);

const VOICE_COUNTRIES: ReadonlySet<string> = new Set(['DE', 'ES', 'FR', 'GB', 'IT', 'JP', 'TH', 'US']);

const UNLIMITED_REGIONS: ReadonlySet<Region> = new Set<Region>(['asia', 'europe', 'north-america']);

const ENTRY_PLANS = [dataPlan(1, 7, 100), dataPlan(3, 30, 260), dataTopup(1, 7, 95)];
const LARGE_PLANS = [dataPlan(10, 30, 700)];
const POPULAR_PLANS = [
  dataPlan(20, 30, 1250),
  dayPass(180),
  unlimitedPlan(7, 900),
  dailyPass(2, 160),
  dataTopup(5, 30, 380),
  daysTopup(7, 60),
  dailyTopup(2, 150),
];
/**
 * Packages that differ in where the traffic leaves, in how a gigabyte is counted, and in the amount at full speed. Half
 * are no better than another one for their price, as on a list of two wholesalers: the shelf leaves those out.
 */
const JAPAN_PLANS = [
  exitingIn('HK', dataPlan(3, 30, 210)),
  exitingIn('JP', dataPlan(3, 30, 290)),
  binary(dataPlan(5, 30, 400)),
  // Better than those above or than nothing.
  exitingIn('HK', binary(dataPlan(3, 30, 210))),
  exitingIn('HK', dataPlan(10, 30, 580)),
  exitingIn('JP', dataPlan(10, 30, 800)),
  unlimitedPlan(7, 1100, 5),
  dailyPass(1, 100),
  // Not better than another one.
  ...[dataPlan(2, 15, 265), dataPlan(2, 30, 275), dataPlan(3, 15, 265), dataPlan(4, 30, 410)],
  ...[dataPlan(5, 15, 405), dataPlan(5, 30, 410), dataPlan(6, 30, 705), dataPlan(8, 30, 720)],
  ...[dataPlan(10, 15, 705), dataPlan(12, 30, 1255), dataPlan(15, 30, 1260)],
  ...[dataPlan(2, 30, 220), dataPlan(3, 15, 215), dataPlan(5, 30, 585), dataPlan(8, 30, 590)].map((plan) =>
    exitingIn('HK', plan),
  ),
  ...[dataPlan(2, 30, 300), dataPlan(3, 15, 295), dataPlan(5, 30, 805), dataPlan(8, 30, 810)].map((plan) =>
    exitingIn('JP', plan),
  ),
  ...[unlimitedPlan(3, 905), unlimitedPlan(5, 905), unlimitedPlan(7, 910, 1)],
  ...[voicePlan(3, 100, 50, 30, 560), voicePlan(5, 100, 50, 15, 555)],
];
const VOICE_PLANS = [voicePlan(5, 100, 50, 30, 550)];
const REGIONAL_PLANS = [
  dataPlan(1, 7, 100),
  dataPlan(5, 30, 400),
  dataPlan(10, 30, 700),
  dataTopup(1, 7, 95),
  dataTopup(5, 30, 380),
];
const UNLIMITED_REGIONAL_PLANS = [unlimitedPlan(15, 1700), daysTopup(15, 110)];
const GLOBAL_PLANS = [
  dataPlan(1, 7, 100),
  dataPlan(3, 30, 260),
  dataPlan(5, 30, 400),
  dataPlan(10, 30, 700),
  dataPlan(20, 365, 1350),
  dataTopup(1, 7, 95),
  dataTopup(5, 30, 380),
  daysTopup(30, 150),
];
const WITHDRAWN_PLANS = [withdrawn(dataPlan(2, 15, 185))];

/**
 * The catalog of a Sandbox key: packages for every sandbox country, every region and the world, their top-ups, and the
 * magic packages. Returns the same list on every call, by ascending id (code units); prices in US cents.
 */
export function sandboxPackages(): readonly CatalogPackage[] {
  return [
    ...SANDBOX_COUNTRIES.flatMap(countryPackages),
    ...REGIONS.flatMap(regionalPackages),
    ...globalPackages(),
    ...magicPackages(),
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function countryPackages(country: SandboxCountry): CatalogPackage[] {
  const plans: Plan[] = [
    ...ENTRY_PLANS,
    ...(country.priceTier === 'remote' ? [] : LARGE_PLANS),
    ...(POPULAR_COUNTRIES.has(country.code) ? POPULAR_PLANS : []),
    ...(VOICE_COUNTRIES.has(country.code) ? VOICE_PLANS : []),
    ...(country.code === 'JP' ? JAPAN_PLANS : []),
    ...(country.code === 'GR' ? WITHDRAWN_PLANS : []),
  ];
  const destination: Destination = {
    slug: country.code.toLowerCase(),
    title: country.name,
    type: 'country',
    region: null,
    countries: [country],
    oneGbCents: ONE_GB_CENTS_BY_TIER[country.priceTier],
  };
  return plans.map((plan) => packageFor(destination, plan));
}

function regionalPackages(region: Region): CatalogPackage[] {
  const plans: Plan[] = [
    ...REGIONAL_PLANS,
    ...(UNLIMITED_REGIONS.has(region) ? UNLIMITED_REGIONAL_PLANS : []),
    ...(region === 'europe' ? VOICE_PLANS : []),
    ...(region === 'oceania' ? WITHDRAWN_PLANS : []),
  ];
  const destination: Destination = {
    slug: region.replaceAll('-', '_'),
    title: REGION_TITLES[region],
    type: 'regional',
    region,
    countries: SANDBOX_COUNTRIES.filter((country) => country.regions.includes(region)),
    oneGbCents: ONE_GB_CENTS_BY_REGION[region],
  };
  return plans.map((plan) => packageFor(destination, plan));
}

function globalPackages(): CatalogPackage[] {
  const destination: Destination = {
    slug: 'global',
    title: 'Global',
    type: 'global',
    region: null,
    // One price for all countries cannot cover the remote ones.
    countries: SANDBOX_COUNTRIES.filter((country) => country.priceTier !== 'remote'),
    oneGbCents: ONE_GB_CENTS_GLOBAL,
  };
  return GLOBAL_PLANS.map((plan) => packageFor(destination, plan));
}

/** Writes this release's Sandbox catalog into the table; part of `migrate`, so that every role finds it. */
@Injectable()
export class SandboxCatalogSeed {
  constructor(
    private readonly transactions: Transactions,
    private readonly catalog: CatalogRepository,
  ) {}

  /** Returns the number of new or changed packages; a repeat changes nothing. */
  async run(): Promise<number> {
    return this.transactions.run((tx) => this.catalog.upsert(tx, 'sandbox', sandboxPackages()));
  }
}

/**
 * Ids of packages that make the sandbox provider misbehave on purpose, so that partners can test cases that otherwise
 * occur only in Live. The sandbox provider recognizes them by id.
 */
export const MAGIC_PACKAGES = {
  /** `order.failed` with `package_unavailable`. */
  outOfStock: 'pkg_test_out_of_stock',
  /** `order.failed` with `insufficient_balance`. */
  insufficientBalance: 'pkg_test_insufficient_balance',
  /** The provider provisions but does not respond the first time; issued once, within 10 s. */
  timeout: 'pkg_test_timeout',
  /** Issued after 20 s. */
  slow: 'pkg_test_slow',
  /** Issues ceil(0.6 x quantity) eSIMs. */
  partial: 'pkg_test_partial',
  /** A top-up that every eSIM accepts: `order.topup.failed` with `package_unavailable`. */
  topupFail: 'pkg_test_topup_fail',
  /** A plan that goes on slower after its data: the eSIM stays `active` at 100 percent (D59). */
  throttled: 'pkg_test_throttled',
  /** A top-up for every eSIM with a data allowance: its plan waits behind the one in use. */
  topupQueued: 'pkg_test_topup_queued',
} as const;

// Microstates, so that a partner who searches for a popular country does not sell a test package by accident.
const TEST_COUNTRIES: ReadonlySet<string> = new Set(['AD', 'LI', 'MC']);

const TEST_DESTINATION: Destination = {
  slug: 'test',
  title: 'Test:',
  type: 'global',
  region: null,
  countries: SANDBOX_COUNTRIES.filter((country) => TEST_COUNTRIES.has(country.code)),
  oneGbCents: 100,
};

const TEST_PLAN = dataPlan(1, 7, 100);
const TEST_TOPUP = dataTopup(1, 7, 100);
const THROTTLED_PLAN: Plan = {
  ...TEST_PLAN,
  speedPolicy: 'At most 512 kbps after 1 GB.',
  fairUse: {
    fullSpeedBytes: UNIT_BYTES.decimal.gb,
    per: 'plan',
    then: 'slower',
    kbps: 512,
    resets: 'unknown',
  },
};

/**
 * The packages of {@link MAGIC_PACKAGES}, and a plain top-up, so that their eSIMs can also be topped up successfully.
 */
function magicPackages(): readonly CatalogPackage[] {
  return [
    magic(MAGIC_PACKAGES.outOfStock, TEST_PLAN, 'out of stock (order.failed package_unavailable)'),
    magic(MAGIC_PACKAGES.insufficientBalance, TEST_PLAN, 'no balance (order.failed insufficient_balance)'),
    magic(MAGIC_PACKAGES.timeout, TEST_PLAN, 'upstream timeout, recovered (order.issued once, within 10 s)'),
    magic(MAGIC_PACKAGES.slow, TEST_PLAN, 'slow upstream (order.issued after 20 s)'),
    magic(MAGIC_PACKAGES.partial, TEST_PLAN, 'partial issue (60 % of the quantity, rounded up)'),
    magic(MAGIC_PACKAGES.topupFail, TEST_TOPUP, 'top-up fails (order.topup.failed package_unavailable)'),
    magic(MAGIC_PACKAGES.throttled, THROTTLED_PLAN, 'slower after 1 GB (stays active at 100 %)'),
    queued(magic(MAGIC_PACKAGES.topupQueued, TEST_TOPUP, 'top-up waits for its turn (its plan is queued)')),
    { ...packageFor(TEST_DESTINATION, TEST_TOPUP), title: 'Test: top-up that succeeds, 1 GB, 7 days' },
  ];
}

function magic(id: string, plan: Plan, whatItDoes: string): CatalogPackage {
  return { ...packageFor(TEST_DESTINATION, plan), id, title: `Test: ${whatItDoes}` };
}

function queued(item: CatalogPackage): CatalogPackage {
  return {
    ...item,
    terms: { ...item.terms, topup: { kinds: ['plan'], behavior: 'queues', maxCount: null } },
  };
}
