import type { Money } from '../api/types.ts';

/** An amount with its currency. Amounts are minor units; the currency says how many make one. */
export function money({ amount, currency }: Money): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** Decimal units, as packages are sold. */
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

/** `partially_issued` as a person says it. */
export const words = (code: string): string => code.replaceAll('_', ' ');

/** Why an attempt failed; `http_status` is an answer that was no 2xx, and the code says which. */
export function failureInWords(attempt: { error: string | null; status_code: number | null }): string | null {
  const { error, status_code: code } = attempt;
  return code !== null && (error === null || error === 'http_status')
    ? `answered with status ${code}`
    : error;
}
