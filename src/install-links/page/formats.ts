import type { Region } from '../../catalog/index.js';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/durations.js';
import type { Language } from '../languages.js';

/** UN M49 codes, which `Intl.DisplayNames` knows in every language; the other regions have no code of their own. */
const REGION_CODES: Partial<Record<Region, string>> = {
  africa: '002',
  asia: '142',
  caribbean: '029',
  europe: '150',
  'latin-america': '419',
  'north-america': '003',
  oceania: '009',
};

/** Names, numbers and times in the page's language. */
export class Formats {
  private readonly names: Intl.DisplayNames;

  constructor(private readonly language: Language) {
    this.names = new Intl.DisplayNames(language, { type: 'region', fallback: 'none' });
  }

  /** The destination's name; null for several countries without a region. */
  place(coverage: readonly string[], region: Region | null): string | null {
    const code = coverage.length === 1 ? coverage[0]! : region && REGION_CODES[region];
    return code ? (this.names.of(code) ?? null) : null;
  }

  /** Bytes as `3 GB`, rounded down, so that the page never shows more than there is. */
  data(bytes: number): string {
    const [unit, size, digits] =
      bytes >= 1e9 ? (['gigabyte', 1e9, 1] as const) : (['megabyte', 1e6, 0] as const);
    const options = { style: 'unit', unit, maximumFractionDigits: digits, roundingMode: 'floor' } as const;
    return new Intl.NumberFormat(this.language, options).format(bytes / size);
  }

  days(days: number): string {
    return this.unit(days, 'day');
  }

  /** Time until `end` in days, rounded because the page shows the end as well; in hours on the last day, in minutes in the last hour. */
  timeLeft(now: Date, end: Date): string {
    const ms = Math.max(0, end.getTime() - now.getTime());
    if (ms >= DAY_MS) return this.days(Math.round(ms / DAY_MS));
    return ms >= HOUR_MS
      ? this.unit(Math.floor(ms / HOUR_MS), 'hour')
      : this.unit(Math.floor(ms / MINUTE_MS), 'minute');
  }

  /** As `in 15 minutes`. */
  inMinutes(minutes: number): string {
    return new Intl.RelativeTimeFormat(this.language).format(minutes, 'minute');
  }

  date(time: Date, zone: string): string {
    return new Intl.DateTimeFormat(this.language, { dateStyle: 'long', timeZone: zone }).format(time);
  }

  /** With the name of the time zone, because the traveler's phone may show another one. */
  time(time: Date, zone: string): string {
    return new Intl.DateTimeFormat(this.language, {
      ...{ year: 'numeric', month: 'long', day: 'numeric', hour: 'numeric', minute: '2-digit' },
      timeZone: zone,
      timeZoneName: zone === 'UTC' ? 'short' : 'longGeneric',
    } as const).format(time);
  }

  private unit(count: number, unit: 'day' | 'hour' | 'minute'): string {
    return new Intl.NumberFormat(this.language, { style: 'unit', unit, unitDisplay: 'long' }).format(count);
  }
}

/** Node 22 has the property, newer versions have the method; TypeScript knows neither. */
type LocaleWithZones = Intl.Locale & { getTimeZones?(): string[]; readonly timeZones?: string[] };

/** The time zone of the destination, if it has only one; otherwise UTC. */
export function zoneOf(coverage: readonly string[]): string {
  const [country, ...others] = coverage;
  if (country === undefined || others.length > 0) return 'UTC';
  const locale: LocaleWithZones = new Intl.Locale('en', { region: country });
  const zones = locale.getTimeZones?.() ?? locale.timeZones ?? [];
  return zones.length === 1 ? zones[0]! : 'UTC';
}
