import { describe, expect, it } from 'vitest';
import { offerLike, unlimitedTier } from '../../simulators/zendit/offers.js';
import { dataLabel } from '../../src/catalog/index.js';
import { toPackage } from '../../src/providers/esim-access/package-listing.js';
import { toPackages } from '../../src/providers/zendit/zendit-catalog.js';

const LISTED_2026 = {
  packageCode: 'PJC9K3B2U',
  slug: 'JP_1_Daily',
  name: 'Japan 1GB/Day',
  price: 8_000,
  currencyCode: 'USD',
  volume: 1_073_741_824,
  smsStatus: 0,
  dataType: 2,
  unusedValidTime: 180,
  duration: 1,
  durationUnit: 'DAY',
  location: 'JP',
  locationCode: 'JP',
  description: 'Japan 1GB/Day',
  activeType: 2,
  supportTopUpType: 3,
  fupPolicy: '1 Mbps',
  locationNetworkList: [{ locationName: 'Japan', locationCode: 'JP', operatorList: [] }],
};

describe('a Zendit offer', () => {
  const costOf = (fees: object) => {
    const offer = offerLike('ESIM-ES');
    return toPackages({ ...offer, cost: { ...offer.cost, fixed: 4_783, ...fees } })[0]!.cost.micros;
  };

  it.each([
    ['no fees', {}, 47_830_000],
    ['a fee', { fee: 50 }, 48_330_000],
    ['a percentage, rounded up to the cent', { feePct: 0.02 }, 48_790_000],
    ['both, and no discount', { fee: 50, feePct: 0.02, discount: 900 }, 49_290_000],
    ['a percentage that is not a binary fraction', { fixed: 300, feePct: 0.07 }, 3_210_000],
    ['no fees in an old list', { fee: undefined, feePct: null, discount: undefined }, 47_830_000],
  ])('has the right cost with %s', (_, fees, micros) => {
    expect(costOf(fees)).toBe(micros);
  });

  it.each([
    { fee: -1 },
    { fee: 0.5 },
    { fee: '50' },
    { feePct: -0.01 },
    { feePct: 2 },
    { feePct: 'two' },
    { fixed: -1 },
  ])('is not sold with %j', (fees) => {
    expect(() => costOf(fees)).toThrow();
  });

  it("names its tier in the title, and keeps the provider's description of the reduced speed", () => {
    const tiers = [unlimitedTier('Fast', '512 kbps', 900), unlimitedTier('Fastest', '1.25 Mbps', 1_400)];
    expect(tiers.map((tier) => toPackages(tier)[0])).toMatchObject([
      { title: 'Spain, Fast', speedPolicy: '1 GB a day at full speed, then 512 kbps until midnight.' },
      { title: 'Spain, Fastest', speedPolicy: '1 GB a day at full speed, then 1.25 Mbps until midnight.' },
    ]);
    expect(toPackages(tiers[0])[0]!.notes).toContain('Unlimited data for 7 days.');
  });

  it('is sold as Spain only if it is for Spain, not for the Canary Islands', () => {
    expect(() => toPackages(offerLike('ESIM-IC-7D-1GB'))).toThrow();
    const region = offerLike('ESIM-EUROPE', {
      country: '',
      regions: ['Western Europe'],
      roaming: ['ES', 'IC', 'PT'].map((country) => ({ country, dataSpeeds: [] })),
    });
    expect(toPackages(region)[0]).toMatchObject({ coverage: ['ES', 'PT'], regionName: 'Western Europe' });
    expect(toPackages(offerLike('ESIM-ES-7D-1GB'))[0]).toMatchObject({ coverage: ['ES'] });
  });

  it('has no networks in its live form, which lists countries and speeds only', () => {
    const roaming = [{ country: 'ES', dataSpeeds: ['4G', '5G'] }];
    expect(toPackages(offerLike('ESIM-ES', { roaming }))[0]!.networks).toEqual([]);
  });
});

describe('an entry of eSIM Access', () => {
  it('includes the reduced speed in its live form', () => {
    expect(toPackage(LISTED_2026, 'base')).toMatchObject({
      dataBytes: 1_073_741_824,
      unlimited: false,
      validityDays: 1,
      speedPolicy: '1 Mbps',
      notes: null,
      topupSupported: true,
    });
    expect(toPackage({ ...LISTED_2026, fupPolicy: '' }, 'base')!.speedPolicy).toMatch(/slower/i);
    expect(toPackage({ ...LISTED_2026, dataType: 1, fupPolicy: '' }, 'base')!.speedPolicy).toBeNull();
  });

  it('is a total amount of data, without known top-ups, in its old form', () => {
    const { dataType, slug, smsStatus, supportTopUpType, locationCode, fupPolicy, ...old } = LISTED_2026;
    expect([dataType, slug, smsStatus, supportTopUpType, locationCode, fupPolicy]).toHaveLength(6);
    expect(toPackage({ ...old, duration: 7 }, 'topup')).toMatchObject({
      kind: 'topup',
      dataBytes: 1_073_741_824,
      validityDays: 7,
      speedPolicy: null,
      topupSupported: false,
    });
  });

  it.each([
    ['!GL', 'Global'],
    ['!RG', null],
    ['EU-30', 'EU-30'],
  ])('maps the location code %s to the region %s', (locationCode, regionName) => {
    const entry = { ...LISTED_2026, location: 'FR,DE', locationCode };
    expect(toPackage(entry, 'base')).toMatchObject({ coverage: ['DE', 'FR'], regionName });
  });
});

describe('stated terms', () => {
  const CASES: readonly [string, object, object, string][] = [
    [
      'a day pass that goes on slower',
      { ipExport: 'NL/FR', speed: '3G/4G/5G' },
      {
        dataUnit: 'binary',
        plan: 'daily',
        maxDays: 365,
        fairUse: {
          fullSpeedBytes: 1_073_741_824,
          per: 'day',
          then: 'slower',
          kbps: 1_000,
          resets: 'unknown',
        },
        exitCountries: ['FR', 'NL'],
        maxGeneration: '5G',
        installWithinDays: 180,
        topup: { kinds: ['days'], behavior: 'adds', maxCount: 10 },
      },
      '1 GB/day',
    ],
    [
      'a day pass that stops',
      { dataType: 3, fupPolicy: '' },
      {
        plan: 'daily',
        maxDays: 365,
        fairUse: { fullSpeedBytes: 1_073_741_824, then: 'stopped', kbps: null },
      },
      '1 GB/day',
    ],
    [
      'a total of 3 x 2^30 bytes',
      { dataType: 1, fupPolicy: '', volume: 3_221_225_472, duration: 30, supportTopUpType: 2 },
      {
        plan: 'total',
        maxDays: null,
        fairUse: null,
        topup: { kinds: ['data'], behavior: 'adds', maxCount: 10 },
      },
      '3 GB',
    ],
    [
      'unlimited data with words that state no speed',
      { dataType: 4, fupPolicy: 'fair use applies' },
      { plan: 'unlimited', fairUse: { fullSpeedBytes: null, then: 'unknown', kbps: null } },
      'Unlimited',
    ],
    [
      'an entry that says nothing',
      {
        ...{ dataType: undefined, fupPolicy: '', ipExport: '', speed: '', volume: 524_288_000 },
        ...{ unusedValidTime: undefined, supportTopUpType: undefined },
      },
      {
        ...{
          plan: 'total',
          maxDays: null,
          fairUse: null,
          exitCountries: null,
          maxGeneration: null,
          hotspot: null,
        },
        ...{
          installWithinDays: null,
          topup: { kinds: [], behavior: 'unknown', maxCount: null },
          variant: null,
        },
      },
      '500 MB',
    ],
  ];

  it.each(CASES)('of eSIM Access contain %s', (_entry, change, terms, label) => {
    const item = toPackage({ ...LISTED_2026, ...change }, 'base')!;
    expect(item.terms).toMatchObject(terms);
    expect(dataLabel(item, item.terms)).toBe(label);
  });

  it('of Zendit contain the fair use of a sentence, the tier and the generation, and nothing else', () => {
    const offer = {
      ...unlimitedTier('Faster', '1.25 Mbps', 900),
      dataSpeeds: ['3G'],
      roaming: [{ country: 'ES', dataSpeeds: ['3G', '4G'] }],
    };
    expect(toPackages(offer)[0]!.terms).toEqual({
      ...{
        dataUnit: 'decimal',
        plan: 'unlimited',
        maxDays: null,
        exitCountries: null,
        maxGeneration: '4G',
        hotspot: null,
      },
      fairUse: { fullSpeedBytes: 1_000_000_000, per: 'day', then: 'slower', kbps: 1_250, resets: 'midnight' },
      ...{ installWithinDays: null, topup: { kinds: ['plan'], behavior: 'queues', maxCount: null } },
      ...{ regionName: null, variant: 'Faster', minRetailPrice: null, saleNote: null },
    });
    const silent = toPackages({ ...offer, notes: 'Fast internet, then slower.', subTypes: [] })[0]!;
    expect(silent.terms).toMatchObject({ fairUse: null, variant: null });
    const local = { ...offer, dataSpeeds: ['4G', '5G'], roaming: [] };
    expect(toPackages(local)[0]!.terms.maxGeneration).toBe('5G');
    const nowhere = toPackages({ ...offer, country: '', regions: [] })[0]!;
    expect(nowhere).toMatchObject({ title: 'Global, Faster', terms: { regionName: null } });
  });
});
