import type { Money } from '../api/types.ts';

/** Formats an amount with its currency. Amounts are minor units; the currency defines their number per unit. */
export function money({ amount, currency }: Money): string {
  const format = inCurrency(currency);
  return withMinus(format.format(amount / minorUnitsIn(format)));
}

/** An amount for a label in a chart, such as `$1.2K`. */
export function shortMoney({ amount, currency }: Money): string {
  const value = amount / minorUnitsIn(inCurrency(currency));
  if (value < 100) return value === 0 ? '0' : money({ amount, currency });
  const short = { style: 'currency', currency, notation: 'compact', maximumFractionDigits: 1 } as const;
  return new Intl.NumberFormat(undefined, short).format(value);
}

/** The sign of a currency, such as `$`. */
export function currencySign(currency: string): string {
  const parts = inCurrency(currency).formatToParts(0);
  return parts.find(({ type }) => type === 'currency')?.value ?? currency;
}

/** A minus sign is as wide as a digit; a hyphen is not. */
const withMinus = (text: string): string => text.replace('-', '−');

/** Minor units of a typed amount such as `250.50`; null if it is not one, or if the code cannot be a currency. */
export function minorUnits(text: string, currency: string): number | null {
  if (!/^\d{1,9}([.,]\d{1,3})?$/.test(text) || !/^[A-Z]{3}$/.test(currency)) return null;
  const units = Number(text.replace(',', '.')) * minorUnitsIn(inCurrency(currency));
  // Binary fractions: 1.1 * 100 is not quite 110.
  return Math.abs(units - Math.round(units)) < 1e-6 ? Math.round(units) : null;
}

const inCurrency = (currency: string): Intl.NumberFormat =>
  new Intl.NumberFormat(undefined, { style: 'currency', currency });

const minorUnitsIn = (format: Intl.NumberFormat): number =>
  10 ** (format.resolvedOptions().maximumFractionDigits ?? 2);

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** Formats bytes in decimal units. */
export function bytes(count: number): string {
  let unit = 0;
  let value = count;
  for (; value >= 1_000 && unit < UNITS.length - 1; unit += 1) value /= 1_000;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${UNITS[unit]}`;
}

export function milliseconds(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

export const count = (number: number): string => number.toLocaleString();

/** `1 call`, `2 calls`, `2 deliveries`. */
export const counted = (number: number, noun: string, plural = `${noun}s`): string =>
  `${count(number)} ${number === 1 ? noun : plural}`;

/** A share of 0 to 1 as `99.4%`. */
export const percent = (share: number): string =>
  share.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** The service stops counting pending, held and failed deliveries here. */
const MAX_COUNTED = 10_000;

export const countOrMore = (number: number): string =>
  number >= MAX_COUNTED ? `${count(MAX_COUNTED)} or more` : count(number);

/** Turns a code such as `partially_issued` into words. */
export const words = (code: string): string => code.replaceAll('_', ' ');

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Node.js and OpenSSL errors of the log in words. */
const ERRORS: readonly (readonly [RegExp, string])[] = [
  [/CERT_HAS_EXPIRED$/, 'TLS certificate expired'],
  [/(ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, 'TLS certificate is for another host'],
  [/^tls/, 'TLS certificate or handshake rejected'],
  [/^dns: (ENOTFOUND|ENODATA)$/, 'host has no address'],
  [/^dns/, 'no name server responded'],
  [/ECONNREFUSED$/, 'connection refused'],
  [/(ECONNRESET|ECONNABORTED|EPIPE)$/, 'connection closed early'],
  [/^connect/, 'could not connect'],
  [/^timeout/, 'timed out'],
  [/^target_refused/, 'not a public HTTPS address'],
  [/^interrupted/, 'interrupted on our side'],
  [/^protocol/, 'invalid HTTP response'],
];

/** Why an attempt failed; `http_status` is a response other than 2xx, and the status code says which. */
export function failureInWords(attempt: { error: string | null; status_code: number | null }): string | null {
  const { error, status_code: code } = attempt;
  return code !== null && (error === null || error === 'http_status')
    ? `returned status ${code}`
    : inWords(error);
}

function inWords(error: string | null): string | null {
  if (error === null) return null;
  const known = ERRORS.find(([pattern]) => pattern.test(error));
  return known ? `${known[1]} (${error})` : error;
}
