import { type Generation, GENERATIONS, type PackageTerms } from '../../catalog/index.js';
import { countAt, countOrNullAt, figureOrNullAt, type ResponseObject, textOrNullAt } from '../http/index.js';
import { kbpsIn } from '../stated-speed.js';
import { minRetailPriceIn } from './sale-note.js';

/** Values of `dataType`. 4 is unlimited data; `volume` has no meaning there. */
export const TOTAL_DATA = 1;
export const SLOWER_AFTER_DAILY_DATA = 2;
const STOPPED_AFTER_DAILY_DATA = 3;
export const UNLIMITED_DATA = 4;

const PLANS: ReadonlyMap<number, PackageTerms['plan']> = new Map([
  [SLOWER_AFTER_DAILY_DATA, 'daily'],
  [STOPPED_AFTER_DAILY_DATA, 'daily'],
  [UNLIMITED_DATA, 'unlimited'],
]);
const DAYS_OF_UNIT: Readonly<Record<string, number>> = { DAY: 1, WEEK: 7, MONTH: 30, YEAR: 365 };
/** Values of `supportTopUpType`: 1 none, 2 data, 3 days (`periodNum`). */
export const NO_TOPUP = 1;
const TOPUP_KINDS: ReadonlyMap<number, PackageTerms['topup']['kinds']> = new Map([
  [2, ['data']],
  [3, ['days']],
]);
/** Maximum of `periodNum`, the number of days of a day pass. */
const MAX_PERIODS = 365;
/** An eSIM takes at most this many top-ups (help pages of the wholesaler's console). */
const MAX_TOPUPS = 10;

/** A duration in days, by the entry's `durationUnit`; null without either. */
export function daysOf(entry: ResponseObject, key: 'duration' | 'totalDuration'): number | null {
  const count = figureOrNullAt(entry, key);
  const days = DAYS_OF_UNIT[textOrNullAt(entry, 'durationUnit') ?? ''];
  return count === null || days === undefined ? null : count * days;
}

/** Statements of a `package/list` entry beyond its allowance (D57). @throws ProviderResponseInvalid */
export function termsOf(
  sold: ResponseObject,
  { regionName, validityDays }: { readonly regionName: string | null; readonly validityDays: number },
): PackageTerms {
  const dataType = countOrNullAt(sold, 'dataType') ?? TOTAL_DATA;
  const maxDays = dataType !== TOTAL_DATA && validityDays === 1 ? MAX_PERIODS : null;
  const saleNote = textOrNullAt(sold, 'saleNote');
  const kinds = TOPUP_KINDS.get(countOrNullAt(sold, 'supportTopUpType') ?? NO_TOPUP) ?? [];
  return {
    // `volume` of a "3GB" package is 3 x 2^30.
    dataUnit: 'binary',
    plan: PLANS.get(dataType) ?? 'total',
    maxDays,
    fairUse: fairUseOf(sold, dataType),
    exitCountries: exitCountriesOf(sold),
    maxGeneration: newestIn(textOrNullAt(sold, 'speed')),
    hotspot: null,
    installWithinDays: countOrNullAt(sold, 'unusedValidTime') || null,
    topup:
      kinds.length === 0
        ? { kinds, behavior: 'unknown', maxCount: null }
        : { kinds, behavior: 'adds', maxCount: MAX_TOPUPS },
    regionName,
    variant: null,
    // A note on a day pass may mean a day or the whole purchase.
    minRetailPrice: maxDays === null ? minRetailPriceIn(saleNote) : null,
    saleNote,
  };
}

/** `fupPolicy`, such as `1 Mbps`, is the speed that is left. No source documents when a day begins. */
function fairUseOf(sold: ResponseObject, dataType: number): PackageTerms['fairUse'] {
  const said = textOrNullAt(sold, 'fupPolicy');
  const kbps = kbpsIn(said);
  const daily = { fullSpeedBytes: countAt(sold, 'volume'), per: 'day', resets: 'unknown' } as const;
  if (dataType === SLOWER_AFTER_DAILY_DATA) return { ...daily, then: 'slower', kbps };
  if (dataType === STOPPED_AFTER_DAILY_DATA) return { ...daily, then: 'stopped', kbps: null };
  if (said === null) return null;
  const per = dataType === UNLIMITED_DATA ? 'day' : 'plan';
  return { fullSpeedBytes: null, per, then: 'unknown', kbps, resets: 'unknown' };
}

/** `ipExport`, such as `HK` or `NL/FR`. */
function exitCountriesOf(sold: ResponseObject): PackageTerms['exitCountries'] {
  const codes = (textOrNullAt(sold, 'ipExport') ?? '').toUpperCase().split(/[/,;\s]+/);
  const countries = [...new Set(codes.filter((code) => /^[A-Z]{2}$/.test(code)))].sort();
  return countries.length === 0 ? null : countries;
}

/** The newest generation in a text such as `3G/4G/5G`; null if it names none. */
function newestIn(text: string | null): Generation | null {
  return GENERATIONS.findLast((generation) => text?.toUpperCase().includes(generation)) ?? null;
}
