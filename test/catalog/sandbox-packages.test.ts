import { describe, expect, it } from 'vitest';
import { dataLabel } from '../../src/catalog/package-terms.js';
import { REGIONS, type CatalogPackage } from '../../src/catalog/package.js';
import { SANDBOX_COUNTRIES } from '../../src/catalog/sandbox/countries.js';
import { MAGIC_PACKAGES, sandboxPackages } from '../../src/catalog/sandbox/sandbox-packages.js';
import type { PackageEntity } from '../../src/catalog/package.entity.js';
import { shelve } from '../../src/catalog/shelf.js';
import { topupPackageMatches } from '../../src/catalog/topup-fits.js';

const packages = sandboxPackages();
const bases = packages.filter((pkg) => pkg.kind === 'base');
const topups = packages.filter((pkg) => pkg.kind === 'topup');
const magicIds: readonly string[] = Object.values(MAGIC_PACKAGES);

function byId(id: string): CatalogPackage {
  const found = packages.find((pkg) => pkg.id === id);
  if (found === undefined) throw new Error(`no package ${id}`);
  return found;
}

/** Returns the ids of packages that break a rule, so that a failing test names them. */
function offenders(keepsRule: (pkg: CatalogPackage) => boolean, among = packages): string[] {
  return among.filter((pkg) => !keepsRule(pkg)).map((pkg) => pkg.id);
}

function isSortedAndUnique(values: readonly string[]): boolean {
  return values.every((value, index) => index === 0 || (values[index - 1] ?? '') < value);
}

describe('sandbox catalog', () => {
  it('has at least 300 packages in at least 110 countries, each country with its own base package', () => {
    expect(packages.length).toBeGreaterThanOrEqual(300);
    const sold = new Set(bases.filter((pkg) => pkg.type === 'country').flatMap((pkg) => pkg.coverage));
    expect(sold.size).toBeGreaterThanOrEqual(110);
    expect(sold).toEqual(new Set(SANDBOX_COUNTRIES.map((country) => country.code)));
  });

  it('sells base packages and top-ups in every region and globally', () => {
    for (const kind of ['base', 'topup']) {
      const ofKind = packages.filter((pkg) => pkg.kind === kind && !magicIds.includes(pkg.id));
      expect(new Set(ofKind.flatMap((pkg) => pkg.region ?? [])), kind).toEqual(new Set(REGIONS));
      expect(ofKind.filter((pkg) => pkg.type === 'global').length, kind).toBeGreaterThan(0);
    }
  });

  it('sets region on regional packages only, and covers one country with a country package', () => {
    expect(offenders((pkg) => (pkg.region !== null) === (pkg.type === 'regional'))).toEqual([]);
    expect(offenders((pkg) => (pkg.coverage.length === 1) === (pkg.type === 'country'))).toEqual([]);
    expect(offenders((pkg) => pkg.type === 'country' || pkg.coverage.length >= 3)).toEqual([]);
  });

  it('is the same on every call, sorted by id, sandbox only', () => {
    expect(sandboxPackages()).toEqual(packages);
    expect(isSortedAndUnique(packages.map((pkg) => pkg.id))).toBe(true);
    expect(offenders((pkg) => pkg.mode === 'sandbox')).toEqual([]);
  });

  it('states data in whole gigabytes of the package unit, and null instead of 0 where there is no amount', () => {
    expect(
      offenders(
        (pkg) =>
          pkg.dataBytes === null ||
          (pkg.dataBytes > 0 && /^\d+ GB(\/day)?$/.test(dataLabel(pkg, pkg.terms)!)),
      ),
    ).toEqual([]);
    expect(offenders((pkg) => (pkg.dataBytes === null) === pkg.unlimited, bases)).toEqual([]);
    expect(offenders((pkg) => !pkg.unlimited, topups)).toEqual([]);
    expect(offenders((pkg) => pkg.voiceMinutes !== 0 && pkg.smsCount !== 0)).toEqual([]);
  });
});

describe('sandbox top-ups', () => {
  it('exist for every base that supports top-ups, with data unless the base is unlimited', () => {
    expect(
      offenders(
        (base) =>
          !base.topupSupported ||
          topups.some(
            (topup) =>
              !magicIds.includes(topup.id) &&
              topup.available &&
              (base.unlimited || topup.dataBytes !== null) &&
              topupPackageMatches(base, topup),
          ),
        bases,
      ),
    ).toEqual([]);
  });
});

describe('topupPackageMatches', () => {
  const france = byId('pkg_fr_1gb_7d');
  const franceData = byId('pkg_fr_topup_1gb_7d');
  const franceDays = byId('pkg_fr_topup_7d');

  it('accepts data and days for a limited base of the same country', () => {
    expect(topupPackageMatches(france, franceData)).toBe(true);
    expect(topupPackageMatches(france, franceDays)).toBe(true);
  });

  it('refuses another coverage, type or mode, and refuses a base package as a top-up', () => {
    expect(topupPackageMatches(france, byId('pkg_de_topup_1gb_7d'))).toBe(false);
    expect(topupPackageMatches(france, byId('pkg_europe_topup_1gb_7d'))).toBe(false);
    expect(topupPackageMatches(france, { ...franceData, type: 'regional' })).toBe(false);
    expect(topupPackageMatches(france, { ...franceData, coverage: ['DE', 'FR'] })).toBe(false);
    expect(topupPackageMatches({ ...france, coverage: ['DE', 'FR'] }, franceData)).toBe(false);
    expect(topupPackageMatches(france, { ...franceData, mode: 'live' })).toBe(false);
    expect(topupPackageMatches(france, byId('pkg_fr_3gb_30d'))).toBe(false);
  });

  it('compares coverage as a set, and also works for Live packages', () => {
    const base = { ...france, mode: 'live', coverage: ['DE', 'FR'] } as const;
    expect(topupPackageMatches(base, { ...franceData, mode: 'live', coverage: ['FR', 'DE'] })).toBe(true);
    expect(topupPackageMatches(base, { ...franceData, mode: 'live', coverage: ['FR', 'FR'] })).toBe(false);
  });

  it('accepts days only for an unlimited base, and no unlimited top-up for a limited base', () => {
    const unlimited = byId('pkg_fr_unlimited_7d');
    expect(topupPackageMatches(unlimited, franceDays)).toBe(true);
    expect(topupPackageMatches(unlimited, franceData)).toBe(false);
    expect(topupPackageMatches(france, { ...franceData, dataBytes: null, unlimited: true })).toBe(false);
  });

  it('refuses a base that does not support top-ups', () => {
    expect(offenders((topup) => !topupPackageMatches(byId('pkg_fr_unlimited_1d'), topup), topups)).toEqual([
      MAGIC_PACKAGES.topupFail,
    ]);
  });
});

describe('magic packages', () => {
  it('exist with the documented ids, are available with 1 GB for 7 days, and identify themselves as tests', () => {
    expect(magicIds.toSorted()).toEqual([
      'pkg_test_insufficient_balance',
      'pkg_test_out_of_stock',
      'pkg_test_partial',
      'pkg_test_slow',
      'pkg_test_throttled',
      'pkg_test_timeout',
      'pkg_test_topup_fail',
      'pkg_test_topup_queued',
    ]);
    for (const id of magicIds) {
      const isTopup = id.startsWith('pkg_test_topup_');
      expect(byId(id)).toMatchObject({
        type: 'global',
        kind: isTopup ? 'topup' : 'base',
        topupSupported: !isTopup,
        dataBytes: 1_000_000_000,
        validityDays: 7,
        available: true,
      });
      expect(byId(id).title).toMatch(/^Test: .+\(.+\)$/);
    }
  });

  it('include a queued top-up for every sandbox eSIM that takes top-ups of data', () => {
    const queued = byId(MAGIC_PACKAGES.topupQueued);
    expect(queued.terms.topup).toEqual({ kinds: ['plan'], behavior: 'queues', maxCount: null });
    const fits = (base: CatalogPackage) => base.topupSupported && base.terms.plan === 'total';
    expect(offenders((base) => topupPackageMatches(base, queued) === fits(base), bases)).toEqual([]);
  });

  it('include a top-up that every sandbox eSIM accepts and no Live eSIM does', () => {
    const topupFail = byId(MAGIC_PACKAGES.topupFail);
    expect(offenders((base) => topupPackageMatches(base, topupFail), bases)).toEqual([]);
    expect(topupPackageMatches({ ...byId('pkg_fr_1gb_7d'), mode: 'live' }, topupFail)).toBe(false);
    expect(
      topupPackageMatches({ ...byId('pkg_fr_1gb_7d'), mode: 'live' }, { ...topupFail, mode: 'live' }),
    ).toBe(false);
  });
});

describe('the country packages of Japan', () => {
  const offered = bases.filter((pkg) => pkg.type === 'country' && pkg.coverage[0] === 'JP' && pkg.available);

  it('are 40, of which the shelf keeps 15 that differ in exit country, plan, speed and unit', () => {
    const { kept } = shelve(
      offered.map((pkg) => ({ item: pkg as unknown as PackageEntity, price: pkg.price })),
    );
    expect([offered.length, kept.length]).toEqual([40, 15]);
    const valuesOf = (value: (item: PackageEntity) => unknown): Set<unknown> =>
      new Set(kept.map(({ item }) => value(item)));
    expect(valuesOf(({ terms }) => terms.exitCountries?.[0] ?? null)).toEqual(new Set([null, 'HK', 'JP']));
    expect(valuesOf(({ terms }) => terms.plan)).toEqual(new Set(['total', 'daily', 'unlimited']));
    expect(valuesOf(({ terms }) => terms.dataUnit)).toEqual(new Set(['decimal', 'binary']));
    expect(valuesOf(({ terms }) => terms.fairUse?.fullSpeedBytes ?? null).size).toBe(4);
  });
});
