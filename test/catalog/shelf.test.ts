import { describe, expect, it } from 'vitest';
import { type FairUse, type PackageTerms, UNSTATED_TERMS } from '../../src/catalog/package-terms.js';
import { PackageEntity } from '../../src/catalog/package.entity.js';
import { type PricedPackage, shelve } from '../../src/catalog/shelf.js';

/** A repeatable random number generator (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const GB = 1_000_000_000;
const SLOWER: FairUse = { fullSpeedBytes: 2 * GB, per: 'day', then: 'slower', kbps: 512, resets: 'midnight' };

function packageOf(
  id: string,
  price: number,
  {
    terms,
    currency = 'USD',
    ...more
  }: Partial<Omit<PackageEntity, 'terms'>> & { terms?: Partial<PackageTerms> } = {},
): PricedPackage {
  const item = Object.assign(new PackageEntity(), {
    id,
    title: id,
    coverage: ['JP'],
    kind: 'base',
    dataBytes: GB,
    unlimited: false,
    voiceMinutes: null,
    smsCount: null,
    validityDays: 7,
    activationPolicy: 'on_first_use',
    topupSupported: true,
    networks: [{ country: 'JP', operator: 'Docomo', generations: ['4G'] }],
    speedPolicy: null,
    terms: { ...UNSTATED_TERMS, ...terms },
    ...more,
  });
  return { item, price: { amount: price, currency } };
}

/** Few values of each field, so that many packages are equal or dominate each other. */
function randomPackage(random: () => number, nth: number): PricedPackage {
  const pick = <V>(...values: readonly V[]): V => values[Math.floor(random() * values.length)]!;
  const mostly = <V>(usual: V, ...others: readonly V[]): V => (random() < 0.93 ? usual : pick(...others));
  const unlimited = random() < 0.2;
  return packageOf(`pkg_${nth}`, pick(100, 200, 300, 400), {
    currency: mostly('USD', 'EUR'),
    coverage: mostly(['JP', 'KR'], ['KR', 'JP'], ['JP']),
    kind: mostly('base', 'topup'),
    dataBytes: unlimited ? null : pick(GB, 2 * GB, 3 * GB, null),
    unlimited,
    voiceMinutes: mostly(null, 100),
    smsCount: mostly(null, 50),
    validityDays: pick(7, 15, 30),
    activationPolicy: mostly('on_first_use', 'on_install'),
    topupSupported: mostly(true, false),
    speedPolicy: mostly(null, 'At most 1 Mbps.'),
    terms: {
      plan: unlimited ? 'unlimited' : mostly('total', 'daily'),
      maxDays: mostly(null, 15, 30),
      exitCountries: mostly(null, ['HK'], ['HK', 'JP'], ['JP', 'HK']),
      maxGeneration: pick(null, '3G', '4G', '5G'),
      hotspot: pick(null, true, false),
      installWithinDays: mostly(null, 90, 180),
      variant: mostly(null, 'nonhkip'),
      fairUse: mostly(
        null,
        SLOWER,
        { ...SLOWER, fullSpeedBytes: GB },
        { ...SLOWER, kbps: null },
        { ...SLOWER, then: 'stopped' },
      ),
      topup: mostly(UNSTATED_TERMS.topup, { kinds: ['data'], behavior: 'adds', maxCount: 10 }),
    },
  });
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const set = (values: readonly string[] | null): unknown => values && [...values].sort();
/** Null, which is unknown, is at least as much as null only. */
const most = (a: number | null, b: number | null): boolean => (a === null || b === null ? a === b : a >= b);
const best = (ranked: readonly unknown[], a: unknown, b: unknown): boolean =>
  b === null ? a === null || a === ranked[0] : a !== null && ranked.indexOf(a) <= ranked.indexOf(b);

/** The partial order as the shelf's comment states it, written once more without groups and sorting. */
function isAtLeast({ item: a, price: p }: PricedPackage, { item: b, price: q }: PricedPackage): boolean {
  const [s, t] = [a.terms, b.terms];
  const [f, g] = [s.fairUse, t.fairUse];
  return (
    p.currency === q.currency &&
    p.amount <= q.amount &&
    same(set(a.coverage), set(b.coverage)) &&
    same(
      [a.kind, a.activationPolicy, a.networks, s.plan, s.variant],
      [b.kind, b.activationPolicy, b.networks, t.plan, t.variant],
    ) &&
    same(set(s.exitCountries), set(t.exitCountries)) &&
    (f && g
      ? same([f.per, f.resets, f.then], [g.per, g.resets, g.then])
      : !f && !g && a.speedPolicy === b.speedPolicy) &&
    most(f?.fullSpeedBytes ?? null, g?.fullSpeedBytes ?? null) &&
    most(f?.kbps ?? null, g?.kbps ?? null) &&
    most(s.installWithinDays, t.installWithinDays) &&
    most(s.maxDays, t.maxDays) &&
    most(a.unlimited ? Infinity : (a.dataBytes ?? 0), b.unlimited ? Infinity : (b.dataBytes ?? 0)) &&
    a.validityDays >= b.validityDays &&
    (a.voiceMinutes ?? 0) >= (b.voiceMinutes ?? 0) &&
    (a.smsCount ?? 0) >= (b.smsCount ?? 0) &&
    best(['5G', '4G', '3G'], s.maxGeneration, t.maxGeneration) &&
    best([true, false], s.hotspot, t.hotspot) &&
    (!b.topupSupported || (a.topupSupported && same(s.topup, t.topup)))
  );
}

function dominates(a: PricedPackage, b: PricedPackage): boolean {
  return a !== b && isAtLeast(a, b) && (!isAtLeast(b, a) || a.item.id < b.item.id);
}

const idsOf = (packages: readonly PricedPackage[]): string[] => packages.map(({ item }) => item.id).sort();

describe('the shelf', () => {
  it('keeps exactly the packages that no other one dominates, and names a kept better one of each other', () => {
    let droppedInAll = 0;
    for (let seed = 1; seed <= 30; seed++) {
      const random = randomOf(seed);
      const all = Array.from({ length: 150 }, (_, nth) => randomPackage(random, nth));
      const { kept, dropped } = shelve(all);
      expect(idsOf(kept), `seed ${seed}`).toEqual(
        idsOf(all.filter((one) => !all.some((other) => dominates(other, one)))),
      );
      expect(idsOf([...kept, ...dropped.map((each) => each.dropped)])).toEqual(idsOf(all));
      for (const { dropped: worse, by } of dropped) {
        expect(dominates(by, worse), `seed ${seed}: ${by.item.id} over ${worse.item.id}`).toBe(true);
        expect(kept).toContain(by);
      }
      droppedInAll += dropped.length;
    }
    expect(droppedInAll).toBeGreaterThan(500);
  });

  it('does not depend on the order of the packages', () => {
    const random = randomOf(7);
    const all = Array.from({ length: 300 }, (_, nth) => randomPackage(random, nth));
    const shuffled = all.toSorted(() => random() - 0.5);
    expect(idsOf(shelve(shuffled).kept)).toEqual(idsOf(shelve(all).kept));
  });

  it.each<[string, PricedPackage, PricedPackage]>([
    ['of equal packages the cheaper one', packageOf('pkg_b', 100), packageOf('pkg_a', 101)],
    [
      'of packages that are equal in everything the smaller id',
      packageOf('pkg_a', 100),
      packageOf('pkg_b', 100),
    ],
    [
      '3 GiB over 3 GB',
      packageOf('pkg_b', 100, { dataBytes: 3 * 2 ** 30 }),
      packageOf('pkg_a', 100, { dataBytes: 3 * GB }),
    ],
    [
      '5G over an unknown generation',
      packageOf('pkg_b', 100, { terms: { maxGeneration: '5G' } }),
      packageOf('pkg_a', 100),
    ],
    ['top-ups over none', packageOf('pkg_b', 100), packageOf('pkg_a', 100, { topupSupported: false })],
    [
      'more data at full speed',
      packageOf('pkg_b', 100, { terms: { fairUse: SLOWER } }),
      packageOf('pkg_a', 100, { terms: { fairUse: { ...SLOWER, fullSpeedBytes: GB } } }),
    ],
  ])('keeps %s', (_, better, worse) => {
    expect(shelve([worse, better])).toEqual({ kept: [better], dropped: [{ dropped: worse, by: better }] });
  });

  it.each<[string, PricedPackage, PricedPackage]>([
    [
      'other exit countries',
      packageOf('pkg_a', 100),
      packageOf('pkg_b', 900, { terms: { exitCountries: ['JP'] } }),
    ],
    [
      '4G against an unknown generation',
      packageOf('pkg_a', 100, { terms: { maxGeneration: '4G' } }),
      packageOf('pkg_b', 900),
    ],
    [
      'an unknown hotspot against none',
      packageOf('pkg_a', 100),
      packageOf('pkg_b', 900, { terms: { hotspot: false } }),
    ],
    ['another plan', packageOf('pkg_a', 100), packageOf('pkg_b', 900, { terms: { plan: 'daily' } })],
    ['another currency', packageOf('pkg_a', 100), packageOf('pkg_b', 900, { currency: 'EUR' })],
    ['another coverage', packageOf('pkg_a', 100, { coverage: ['JP', 'KR'] }), packageOf('pkg_b', 900)],
    ['more days', packageOf('pkg_a', 100), packageOf('pkg_b', 900, { validityDays: 8 })],
  ])('keeps both of two packages with %s', (_, one, other) => {
    expect(shelve([one, other]).dropped).toEqual([]);
  });
});
