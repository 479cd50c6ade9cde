import type { CatalogPackage } from '../package.js';
import { SANDBOX_COUNTRIES } from './countries.js';
import { dataPlan, dataTopup, type Destination, packageFor, type Plan } from './plan.js';

/**
 * Ids of the packages that make the sandbox provider misbehave on purpose, so that partners can test what they
 * would otherwise meet in Live only. The sandbox provider recognises them by id.
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
  /** A top-up every eSIM accepts: `order.topup.failed` with `package_unavailable`. */
  topupFail: 'pkg_test_topup_fail',
} as const;

// Microstates: a partner who searches the catalogue for a popular country does not sell a test package by accident.
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

/** The packages of {@link MAGIC_PACKAGES}, and a plain top-up, so that their eSIMs can also be topped up with success. */
export function magicPackages(): readonly CatalogPackage[] {
  return [
    magic(MAGIC_PACKAGES.outOfStock, TEST_PLAN, 'out of stock (order.failed package_unavailable)'),
    magic(MAGIC_PACKAGES.insufficientBalance, TEST_PLAN, 'no balance (order.failed insufficient_balance)'),
    magic(MAGIC_PACKAGES.timeout, TEST_PLAN, 'upstream timeout, recovered (order.issued once, within 10 s)'),
    magic(MAGIC_PACKAGES.slow, TEST_PLAN, 'slow upstream (order.issued after 20 s)'),
    magic(MAGIC_PACKAGES.partial, TEST_PLAN, 'partial issue (60 % of the quantity, rounded up)'),
    magic(MAGIC_PACKAGES.topupFail, TEST_TOPUP, 'top-up fails (order.topup.failed package_unavailable)'),
    { ...packageFor(TEST_DESTINATION, TEST_TOPUP), title: 'Test: top-up that succeeds, 1 GB, 7 days' },
  ];
}

function magic(id: string, plan: Plan, whatItDoes: string): CatalogPackage {
  return { ...packageFor(TEST_DESTINATION, plan), id, title: `Test: ${whatItDoes}` };
}
