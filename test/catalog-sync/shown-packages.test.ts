import { describe, expect, it } from 'vitest';
import { UNSTATED_TERMS } from '../../src/catalog/index.js';
import { LookAlikes } from '../../src/catalog-sync/list-in-progress.js';
import { regionOf, toLivePackage, toShownText } from '../../src/catalog-sync/live-packages.js';
import { offer } from './scripted-provider.js';

const TERMS = { marginBps: 0, rules: [] };

describe('provider texts', () => {
  it.each([
    ['<p>Then <b>512 kbps</b></p>', 'Then 512 kbps'],
    ['a\u0000b\n\tc\u202ed\u200b', 'a b c d'],
    ['1 < 2 > 0', '1 2 0'],
    ['  ', null],
    [null, null],
    ['<script>', null],
    ['x'.repeat(300), `${'x'.repeat(199)}…`],
    ['😀'.repeat(200), '😀'.repeat(200)],
  ])('shows %j as %j', (text, shown) => {
    expect(toShownText(text, 200)).toBe(shown);
  });

  it("truncates texts to the contract's limits", () => {
    const packed = toLivePackage(
      'zendit',
      offer('A', { speedPolicy: 'y'.repeat(999), notes: 'z'.repeat(999) }),
      TERMS,
    );
    expect([packed!.item.speedPolicy!.length, packed!.item.notes!.length]).toEqual([200, 500]);
  });
});

describe('a region', () => {
  it.each([
    ['Western Europe', 'europe'],
    ['Eastern Europe', 'europe'],
    ['Southeast Asia', 'asia'],
    ['South America', 'latin-america'],
    ['Central America', 'latin-america'],
    ['North America', 'north-america'],
    ['Middle East and North Africa', 'middle-east'],
    ['Western Europe, Eastern Europe', 'europe'],
    ['Asia, Europe', null],
    ['Global', null],
    ['EU-30', null],
    [null, null],
  ])('maps %s to our %s', (name, region) => {
    expect(regionOf(name)).toBe(region);
  });

  it('is read from the title when its own name says nothing', () => {
    const sold = offer('E', { title: 'Europe 1GB', regionName: 'EU-30', coverage: ['DE', 'FR'] });
    expect(toLivePackage('esim_access', sold, TERMS)!.item).toMatchObject({
      type: 'regional',
      region: 'europe',
    });
  });
});

describe('identical packages', () => {
  const look = (id: string, cents: number, more = {}) => {
    const packed = toLivePackage(
      'zendit',
      offer(id, { title: 'Spain', cost: { micros: cents * 10_000, currency: 'USD' }, ...more }),
      TERMS,
    )!.item;
    return { ...packed, priceAmount: packed.price.amount, currency: 'USD' };
  };

  it('are sold once, at the cheapest price, and packages that differ in any shown field stay separate', () => {
    const looks = new LookAlikes();
    const [cheap, dear, same] = [look('A', 100), look('B', 200), look('C', 100)];
    const [tier, policy] = [
      look('D', 300, { title: 'Spain, Faster' }),
      look('E', 400, { speedPolicy: '1 Mbps' }),
    ];
    for (const each of [dear, cheap, same, tier, policy]) looks.put(each);
    expect([dear, cheap, same, tier, policy].map((each) => looks.isCheapest(each))).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
    const exits = ['HK', 'JP'].map((country, at) =>
      look(`X${at}`, 500 + at, { terms: { ...UNSTATED_TERMS, exitCountries: [country] } }),
    );
    for (const each of exits) looks.put(each);
    expect(exits.map((each) => looks.isCheapest(each))).toEqual([true, true]);
    const minima = [450, 500].map((amount) =>
      look(`M${amount}`, 600 + amount, {
        terms: { ...UNSTATED_TERMS, minRetailPrice: { amount, currency: 'USD' } },
      }),
    );
    const noted = look('N', 2_000, { terms: { ...minima[0]!.terms, saleNote: 'for the portal team only' } });
    for (const each of [...minima, noted]) looks.put(each);
    expect([...minima, noted].map((each) => looks.isCheapest(each))).toEqual([true, true, false]);
    looks.drop(cheap.id);
    looks.drop(same.id);
    expect(looks.isCheapest(dear)).toBe(true);
  });
});
