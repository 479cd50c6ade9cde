import { HOUR_MS } from '../common/durations.js';
import type { EsimEntity } from './esim.entity.js';
import { EXPIRING_HOURS } from './esim-transition.js';

/** A move of the end by less is a more exact reading, not a longer validity. */
const LONGER_MS = 12 * HOUR_MS;

const warningTime = (expiresAt: Date, hours: number): Date => new Date(expiresAt.getTime() - hours * HOUR_MS);

/** The first `esim.expiring` of a validity that begins now; null if it is no longer than the smallest level. */
export function firstWarning(expiresAt: Date | null, now: Date): Date | null {
  if (expiresAt === null) return null;
  const times = EXPIRING_HOURS.map((hours) => warningTime(expiresAt, hours));
  return times.find((time) => time > now) ?? null;
}

/**
 * When the next `esim.expiring` is due after a change. A longer validity begins anew: levels that are already reached
 * count as announced. Otherwise a level stays announced, and an earlier end may make a level due at once.
 */
export function warningAfter(esim: EsimEntity, changes: Partial<EsimEntity>, now: Date): Date | null {
  const { status, expiresAt } = { ...esim, ...changes };
  if (expiresAt === null || status === 'expired' || status === 'canceled') return null;
  const { expiresAt: known, expiryWarningAt: due } = esim;
  if (known === null || expiresAt.getTime() > known.getTime() + LONGER_MS)
    return firstWarning(expiresAt, now);
  // An eSIM from before the column existed has none yet.
  if (due === null) return firstWarning(known, now) && firstWarning(expiresAt, now);
  const open = EXPIRING_HOURS.filter((hours) => warningTime(known, hours) >= due);
  const times = open.map((hours) => warningTime(expiresAt, hours));
  return times.findLast((time) => time <= now) ?? times[0] ?? null;
}

/** The level that a due warning announces, and when the next one is due; null if the eSIM no longer needs it. */
export function levelOfWarning(
  { expiresAt, status, expiryWarningAt: due }: EsimEntity,
  now: Date,
): { readonly hours: number; readonly expiresAt: Date; readonly nextAt: Date | null } | null {
  if (expiresAt === null || due === null || due > now || expiresAt <= now) return null;
  if (status === 'expired' || status === 'canceled') return null;
  // After a pause of the worker, several levels may be reached: the smallest is true.
  const hours = EXPIRING_HOURS.findLast((level) => warningTime(expiresAt, level) <= now);
  return hours === undefined ? null : { hours, expiresAt, nextAt: firstWarning(expiresAt, now) };
}
