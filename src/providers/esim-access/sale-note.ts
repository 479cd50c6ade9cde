import type { Money } from '../../common/money.js';

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'));

const WORDS = String.raw`minimum\s+retail\s+price`;
const LINK = String.raw`(?:\s*[:=]\s*|(?:\s+(?:of|is|as|at|the|a|must|should|be|set|to|not|less|lower|than))*\s+)`;
const USD = String.raw`(?:(?:USD|US\$|\$)\s?(\d{1,6}(?:\.\d{1,2})?)|(\d{1,6}(?:\.\d{1,2})?)\s?(?:USD|US dollars?))`;
/** A price per day or gigabyte, a share or the start of a range is no price of a package. */
const NO_MORE = String.raw`(?=[.,;!)]*(?:\s|$))(?![.,;!)]*\s*(?:(?:per|each|an?|or|to|plus|off)\b|[/%+~-]))`;
const FORMS = [
  new RegExp(String.raw`(?<!\b(?:no|without)\s+(?:a\s+)?)\b${WORDS}${LINK}${USD}${NO_MORE}`, 'i'),
  new RegExp(String.raw`(?<![\w$.,])${USD}${LINK}${WORDS}${NO_MORE}`, 'i'),
];

/**
 * The minimum retail price in a `saleNote`, such as `Resellers must ensure a minimum retail price of USD 4.50.` The
 * text has no documented form. Null, and never a guess, unless its only number is an amount in USD beside these words. A
 * bare `$` means USD, the currency of all prices that we read.
 */
export function minRetailPriceIn(note: string | null): Money | null {
  if (note === null || note.match(/\d+(?:[.,]\d+)*/g)?.length !== 1) return null;
  const codes = note.match(/\b[A-Z]{3}\b/g) ?? [];
  if (codes.some((code) => code !== 'USD' && CURRENCIES.has(code))) return null;
  const [, before, after] = FORMS.map((form) => form.exec(note)).find((found) => found !== null) ?? [];
  const amount = Math.round(Number(before ?? after ?? 0) * 100);
  return amount > 0 ? { amount, currency: 'USD' } : null;
}
