import { describe, expect, it } from 'vitest';
import { packageOnWire } from '../../simulators/esim-access/catalog.js';
import { largeCatalog } from '../../simulators/esim-access/large-catalog.js';
import type { Offer } from '../../simulators/zendit/contract.js';
import { largeOffers } from '../../simulators/zendit/large-catalog.js';
import { offerLike } from '../../simulators/zendit/offers.js';
import { toPackage } from '../../src/providers/esim-access/package-listing.js';
import type { ProviderPackage } from '../../src/providers/index.js';
import { toPackages } from '../../src/providers/zendit/zendit-catalog.js';

type Raw = Record<string, unknown>;

/** A statement of the wholesaler, and the part of the package that must repeat it. */
type Statement = readonly [
  name: string,
  said: (raw: Raw) => unknown,
  shown: (item: ProviderPackage) => unknown,
];

/** The entries whose package shows something else than the wholesaler says, by statement. */
function differences(read: readonly (readonly [Raw, ProviderPackage])[], statements: readonly Statement[]) {
  return statements.flatMap(([name, said, shown]) =>
    read
      .filter(([raw, item]) => JSON.stringify(said(raw)) !== JSON.stringify(shown(item)))
      .slice(0, 1)
      .map(([raw, item]) => ({ id: item.upstreamId, name, said: said(raw), shown: shown(item) })),
  );
}

/** Flat paths of values that say something. */
function statedPaths(value: unknown, path = ''): string[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.length === 0 ? [] : [path];
  if (typeof value !== 'object') return [path];
  return Object.entries(value).flatMap(([key, each]) => statedPaths(each, `${path}.${key}`));
}

const byName = (codes: Iterable<string>) => [...new Set(codes)].sort();
const countriesIn = (text: unknown) => byName(String(text).split(',')).filter((code) => code !== 'IC');

describe('2,590 packages of eSIM Access', () => {
  const entries: Raw[] = largeCatalog().map(packageOnWire);
  const read = entries.map((raw) => [raw, toPackage(raw, 'base')!] as const);
  const is = (raw: Raw, ...types: number[]) => types.includes(raw['dataType'] as number);
  const orNull = (value: unknown) => (value === '' || value === 0 ? null : value);
  const GENERATIONS: Raw = { '3G/4G/5G': '5G', '4G/5G': '5G', '5G': '5G', '3G/4G': '4G', '4G': '4G' };
  const KBPS: Raw = { '1 Mbps': 1_000, '512 Kbps': 512, '128kbps': 128, '1.25 Mbps': 1_250 };
  const kbps = (raw: Raw) => KBPS[String(raw['fupPolicy'])] ?? null;
  const regionIn = (code: string) => (code === '!GL' ? 'Global' : code === '!RG' ? null : code);
  const days = (raw: Raw) => Number(raw['duration']) * (raw['durationUnit'] === 'MONTH' ? 30 : 1);

  const STATEMENTS: readonly Statement[] = [
    ['name', (raw) => raw['name'], (item) => item.title],
    ['price', (raw) => Number(raw['price']) * 100, (item) => item.cost.micros],
    [
      'retail price',
      (raw) => orNull(Number(raw['retailPrice']) * 100),
      (item) => item.suggestedRetail?.micros ?? null,
    ],
    ['volume', (raw) => (is(raw, 4) ? null : raw['volume']), (item) => item.dataBytes],
    ['unlimited', (raw) => is(raw, 4), (item) => item.unlimited],
    ['duration', days, (item) => item.validityDays],
    ['countries', (raw) => countriesIn(raw['location']), (item) => item.coverage],
    [
      'activation',
      (raw) => ({ 1: 'on_install', 2: 'on_first_use' })[raw['activeType'] as 1 | 2],
      (item) => item.activationPolicy,
    ],
    [
      'plan',
      (raw) => ['total', 'daily', 'daily', 'unlimited'][Number(raw['dataType']) - 1],
      (item) => item.terms.plan,
    ],
    ['unit', () => 'binary', (item) => item.terms.dataUnit],
    [
      'data of a day at full speed',
      (raw) => (is(raw, 2, 3) ? raw['volume'] : null),
      ({ terms: { fairUse } }) => fairUse?.fullSpeedBytes ?? null,
    ],
    [
      'after the data of a day',
      (raw) => (is(raw, 2) ? 'slower' : is(raw, 3) ? 'stopped' : orNull(raw['fupPolicy']) && 'unknown'),
      ({ terms: { fairUse } }) => fairUse?.then ?? null,
    ],
    [
      'reduced speed',
      (raw) => (is(raw, 3) ? null : kbps(raw)),
      ({ terms: { fairUse } }) => fairUse?.kbps ?? null,
    ],
    [
      'words about the reduced speed',
      (raw) => orNull(raw['fupPolicy']) ?? (is(raw, 2) ? 'Slower after the data of the day' : null),
      (item) => item.speedPolicy,
    ],
    [
      'exit countries',
      (raw) => orNull(raw['ipExport']) && byName(String(raw['ipExport']).split('/')),
      (item) => item.terms.exitCountries,
    ],
    ['generation', (raw) => GENERATIONS[String(raw['speed'])] ?? null, (item) => item.terms.maxGeneration],
    ['days to install', (raw) => raw['unusedValidTime'], (item) => item.terms.installWithinDays],
    [
      'top-ups',
      (raw) => [[], ['data'], ['days']][Number(raw['supportTopUpType']) - 1],
      (item) => item.terms.topup.kinds,
    ],
    [
      'most top-ups',
      (raw) => (raw['supportTopUpType'] === 1 ? null : 10),
      (item) => item.terms.topup.maxCount,
    ],
    ['top-ups at all', (raw) => raw['supportTopUpType'] !== 1, (item) => item.topupSupported],
    [
      'region',
      (raw) => (countriesIn(raw['location']).length === 1 ? null : regionIn(String(raw['locationCode']))),
      (item) => item.terms.regionName,
    ],
    [
      'description',
      (raw) => (raw['description'] === raw['name'] ? null : raw['description']),
      (item) => item.notes,
    ],
    [
      'operators',
      (raw) =>
        (raw['locationNetworkList'] as { locationCode: string; operatorList: Raw[] }[]).flatMap(
          ({ locationCode, operatorList }) =>
            operatorList.map((each) => [locationCode, each['operatorName'], [each['networkType']]]),
        ),
      (item) => item.networks.map((each) => [each.country, each.operator, each.generations]),
    ],
    ['note for resellers', (raw) => raw['saleNote'] ?? null, (item) => item.terms.saleNote],
    [
      'minimum retail price',
      (raw) =>
        is(raw, 1) && /4\.50/.test(String(raw['saleNote'])) ? { amount: 450, currency: 'USD' } : null,
      (item) => item.terms.minRetailPrice,
    ],
    ['never said', () => [null, null], ({ terms: { hotspot, variant } }) => [hotspot, variant]],
  ];

  it('are the same in every run, and all different', () => {
    expect(entries).toHaveLength(2_590);
    expect(largeCatalog().map(packageOnWire)).toEqual(entries);
    expect(new Set(entries.map((raw) => raw['packageCode'])).size).toBe(2_590);
    const kinds = new Set(entries.map((raw) => [raw['dataType'], raw['supportTopUpType']].join()));
    expect(byName(kinds)).toEqual(['1,1', '1,2', '2,1', '2,3', '3,1', '3,3', '4,1', '4,3']);
  });

  it('repeat everything that the wholesaler says', () => {
    expect(differences(read, STATEMENTS)).toEqual([]);
  });

  it.each([
    ['ipExport', '', ['exitCountries']],
    ['speed', '', ['maxGeneration']],
    ['unusedValidTime', 0, ['installWithinDays']],
    ['supportTopUpType', 1, ['topup']],
    ['fupPolicy', '', ['fairUse']],
    ['saleNote', '', ['saleNote', 'minRetailPrice']],
  ])('say nothing in place of %s, and the same about the rest', (field, silence, changed) => {
    const without = (terms: object) => Object.entries(terms).filter(([key]) => !changed.includes(key));
    for (const [raw, item] of read) {
      for (const silent of [silence, undefined, null]) {
        const { terms } = toPackage({ ...raw, [field]: silent }, 'base')!;
        expect(without(terms)).toEqual(without(item.terms));
        const { topup, fairUse } = terms;
        const said: Record<string, unknown> = { ...terms, topup: topup.maxCount, fairUse: fairUse?.kbps };
        expect(said[changed[0]!] ?? null).toBeNull();
      }
    }
  });

  it('claim only plan and unit when the wholesaler says no more than name, price, volume and place', () => {
    const bare = ['packageCode', 'name', 'price', 'currencyCode', 'volume', 'duration', 'durationUnit'];
    for (const [raw] of read) {
      const said = Object.fromEntries([...bare, 'location'].map((field) => [field, raw[field]]));
      const { terms, topupSupported, networks, speedPolicy, notes, suggestedRetail, regionName } = toPackage(
        said,
        'base',
      )!;
      expect(
        statedPaths({ topup: { ...terms.topup, behavior: null }, rest: { ...terms, topup: null } }),
      ).toEqual(['.rest.dataUnit', '.rest.plan']);
      expect(terms).toMatchObject({ plan: 'total', topup: { behavior: 'unknown' } });
      expect([speedPolicy, notes, suggestedRetail, regionName]).toEqual([null, null, null, null]);
      expect({ topupSupported, networks }).toEqual({ topupSupported: false, networks: [] });
    }
  });
});

describe('4,510 offers of Zendit', () => {
  const offers: Offer[] = largeOffers();
  const read = offers.map((offer) => [offer as unknown as Raw, toPackages(offer)[0]!] as const);
  const offerOf = (raw: Raw) => raw as unknown as Offer;
  /** [bytes a day at full speed, kbit/s after them] of each tier, as its notes say. */
  const TIERS: Record<string, readonly [number, number]> = {
    Fast: [1e9, 512],
    Faster: [1e9, 1_250],
    Fastest: [2e9, 2_000],
  };
  const tier = (raw: Raw) => TIERS[offerOf(raw).subTypes[0] ?? ''];
  const REGION_NAMES = ['Western Europe', 'South America', 'Middle East and North Africa', 'South East Asia'];

  const STATEMENTS: readonly Statement[] = [
    ['cost', (raw) => offerOf(raw).cost.fixed * 10_000, (item) => item.cost.micros],
    [
      'suggested price',
      (raw) => offerOf(raw).price.suggestedFixed * 10_000 || null,
      (item) => item.suggestedRetail?.micros ?? null,
    ],
    [
      'data',
      (raw) => (offerOf(raw).dataUnlimited ? null : Math.round(offerOf(raw).dataGB * 1e9)),
      (item) => item.dataBytes,
    ],
    ['unlimited', (raw) => raw['dataUnlimited'], (item) => item.unlimited],
    ['duration', (raw) => raw['durationDays'], (item) => item.validityDays],
    [
      'countries',
      (raw) =>
        countriesIn(
          [raw['country'], ...offerOf(raw).roaming.map(({ country }) => country)].filter(Boolean).join(','),
        ),
      (item) => item.coverage,
    ],
    [
      'voice and SMS',
      (raw) => [offerOf(raw).voiceMinutes || null, offerOf(raw).smsNumber || null],
      (item) => [item.voiceMinutes, item.smsCount],
    ],
    ['unit', () => 'decimal', (item) => item.terms.dataUnit],
    ['plan', (raw) => (raw['dataUnlimited'] ? 'unlimited' : 'total'), (item) => item.terms.plan],
    ['tier', (raw) => offerOf(raw).subTypes[0] ?? null, (item) => item.terms.variant],
    [
      'fair use',
      (raw) => tier(raw) && [...tier(raw)!, 'day', 'slower', 'midnight'],
      ({ terms: { fairUse: use } }) =>
        use ? [use.fullSpeedBytes, use.kbps, use.per, use.then, use.resets] : undefined,
    ],
    ['notes', (raw) => raw['notes'], (item) => item.notes],
    ['region', (raw) => offerOf(raw).regions[0] ?? null, (item) => item.terms.regionName],
    [
      'generation',
      (raw) => {
        const said = [
          ...offerOf(raw).dataSpeeds,
          ...offerOf(raw).roaming.flatMap(({ dataSpeeds }) => dataSpeeds),
        ];
        return ['5G', '4G', '3G'].find((generation) => said.includes(generation)) ?? null;
      },
      (item) => item.terms.maxGeneration,
    ],
    [
      'never said',
      () => [null, null, null],
      ({ terms: t }) => [t.exitCountries, t.hotspot, t.installWithinDays],
    ],
    ['networks, never said', () => [], (item) => item.networks],
  ];

  it('are the same in every run, and have the recorded share of unlimited ones', () => {
    expect(offers).toHaveLength(4_510);
    expect(largeOffers()).toEqual(offers);
    expect(new Set(offers.map(({ offerId }) => offerId)).size).toBe(4_510);
    expect(Math.abs(offers.filter(({ dataUnlimited }) => dataUnlimited).length - 3_301)).toBeLessThan(10);
    expect(byName(offers.flatMap(({ regions }) => regions))).toEqual(byName(REGION_NAMES));
  });

  it('repeat everything that the wholesaler says', () => {
    expect(differences(read, STATEMENTS)).toEqual([]);
  });

  it('claim only plan, unit and waiting plans when the wholesaler says nothing else', () => {
    const bare = {
      ...offerLike('ESIM-BARE'),
      dataSpeeds: [],
      subTypes: [],
      roaming: [],
      notes: '',
      shortNotes: '',
    };
    const { terms, networks, speedPolicy, notes, voiceMinutes, smsCount } = toPackages(bare)[0]!;
    expect(statedPaths(terms)).toEqual(['.dataUnit', '.plan', '.topup.kinds', '.topup.behavior']);
    expect([speedPolicy, notes, voiceMinutes, smsCount, networks]).toEqual([null, null, null, null, []]);
  });
});
