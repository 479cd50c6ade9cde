import { describe, expect, it } from 'vitest';
import { chooseLanguage, LANGUAGES } from '../../src/install-links/languages.js';
import { Formats, zoneOf } from '../../src/install-links/page/formats.js';
import { TEXTS } from '../../src/install-links/page/texts/index.js';

const placeholders = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).toSorted();

describe('the texts of the install page', () => {
  it.each(LANGUAGES)('have the keys and placeholders of English in %s, each translated', (language) => {
    const texts = TEXTS[language];
    expect(Object.keys(texts)).toEqual(Object.keys(TEXTS.en));
    for (const [key, text] of Object.entries(texts) as [keyof typeof texts, string][]) {
      expect([key, placeholders(text)]).toEqual([key, placeholders(TEXTS.en[key])]);
      expect([key, text.trim()]).not.toEqual([key, '']);
    }
    const same = Object.entries(texts).filter(([key, text]) => text === TEXTS.en[key as keyof typeof texts]);
    expect(language === 'en' ? [] : same).toEqual([]);
  });
});

describe('the language of the install page', () => {
  it.each([
    [{ chosen: 'pl', locale: 'de', accepted: 'fr' }, 'pl'],
    [{ chosen: 'xx', locale: 'de', accepted: 'fr' }, 'de'],
    [{ chosen: undefined, locale: null, accepted: 'da, fr-CH;q=0.9, de;q=0.8' }, 'fr'],
    [{ chosen: undefined, locale: null, accepted: 'en;q=0.3, zh-Hant-TW;q=0.9' }, 'zh'],
    [{ chosen: undefined, locale: null, accepted: 'de;q=0' }, 'en'],
    [{ chosen: undefined, locale: null, accepted: `${'x,'.repeat(5_000)}de` }, 'en'],
    [{ chosen: undefined, locale: null, accepted: undefined }, 'en'],
  ] as const)('is chosen from %j', (hints, expected) => {
    expect(chooseLanguage(hints)).toBe(expected);
  });
});

describe('the formats of the install page', () => {
  it.each(LANGUAGES)('name a destination and a duration in %s', (language) => {
    const formats = new Formats(language);
    expect(formats.place(['JP'], null)).not.toBe('JP');
    expect(formats.place(['FR', 'DE'], 'europe')).toMatch(/\S/);
    expect(formats.place(['FR', 'DE'], null)).toBeNull();
    expect(formats.days(15)).toMatch(/15/);
  });

  it('never show more data than there is, and round days, but not the last hours', () => {
    const formats = new Formats('en');
    expect(formats.data(2_199_999_999)).toBe('2.1 GB');
    expect(formats.data(999_999_999)).toBe('999 MB');
    const now = new Date('2027-01-01T00:00:00Z');
    expect(formats.timeLeft(now, new Date('2027-01-11T23:59:59Z'))).toBe('11 days');
    expect(formats.timeLeft(now, new Date('2027-01-02T11:59:59Z'))).toBe('1 day');
    expect(formats.timeLeft(now, new Date('2027-01-01T05:59:59Z'))).toBe('5 hours');
    expect(formats.timeLeft(now, new Date('2026-01-01T00:00:00Z'))).toBe('0 minutes');
    expect(formats.timeLeft(now, new Date('2027-01-01T00:59:59Z'))).toBe('59 minutes');
  });

  it("use the destination's time zone where it has one", () => {
    expect(zoneOf(['JP'])).toBe('Asia/Tokyo');
    expect(zoneOf(['US'])).toBe('UTC');
    expect(zoneOf(['FR', 'DE'])).toBe('UTC');
  });
});
