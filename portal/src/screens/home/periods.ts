import type { Overview } from '../../api/types.ts';

export type Period = Overview['window'];

export const PERIODS = [
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
] as const satisfies readonly (readonly [Period, string])[];

/** Names of the period and the one before, for the key of a chart. */
export const NAMES: Record<Period, readonly [current: string, previous: string]> = {
  '24h': ['These 24 hours', '24 hours before'],
  '7d': ['These 7 days', '7 days before'],
  '30d': ['These 30 days', '30 days before'],
};

const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
// Days are those of the server.
const WEEKDAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', timeZone: 'UTC' });
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });

/** The name of a step of the period, for a table. */
export function stepName(at: string, period: Period): string {
  const date = new Date(at);
  return period === '24h' ? HOUR.format(date) : `${WEEKDAY.format(date)}, ${DAY.format(date)}`;
}

/** Steps between two labels, by period. */
const EVERY: Record<Period, number> = { '24h': 6, '7d': 1, '30d': 7 };

/** The label of a step below its bar; empty where labels would overlap. */
export function stepLabel(at: string, period: Period, index: number, last: number): string {
  const date = new Date(at);
  if (period === '7d') return WEEKDAY.format(date);
  if (index === last) return period === '24h' ? 'Now' : 'Today';
  if (index % EVERY[period] !== 0 || index > last - 3) return '';
  return period === '24h' ? HOUR.format(date) : DAY.format(date);
}
