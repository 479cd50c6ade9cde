import { DAY_MS, MINUTE_MS } from '../../common/durations.js';
import { type InstallFacts, LOCK_MINUTES } from './install-page.repository.js';

/** An older measurement in use is not shown: the slowest regular poll of such an eSIM is every 12 hours. */
const FRESH_MS = DAY_MS;

/**
 * The main part of the page. `new`: nobody has installed the eSIM. `installed`: it is on a device. `ended`: it can no longer
 * be used. Decided by the clock as well as by the stored status, because the worker that writes the status may be down.
 */
export type PageState = 'new' | 'installed' | 'ended';

export function stateOf({ status, profileStatus, expiresAt, installBy, now }: InstallFacts): PageState {
  if (status === 'expired' || status === 'canceled') return 'ended';
  const end = expiresAt ?? installBy;
  if (end && end <= now) return 'ended';
  const isUnused = status === 'issued' && (profileStatus === 'released' || profileStatus === 'unknown');
  return isUnused ? 'new' : 'installed';
}

/** Whether access codes are refused, because too many were wrong when the page was read. */
export function isLocked({ lockedUntil, now }: InstallFacts): boolean {
  return lockedUntil !== null && lockedUntil > now;
}

/** Minutes, rounded up, until a locked link takes access codes again; those of a whole lock if it has just begun. */
export function lockMinutes({ lockedUntil, now }: InstallFacts): number {
  const ms = lockedUntil === null ? 0 : lockedUntil.getTime() - now.getTime();
  return ms > 0 ? Math.ceil(ms / MINUTE_MS) : LOCK_MINUTES;
}

/** Whether the measured use is too old to be shown. An eSIM that was never used has none to miss. */
export function isStale({ activatedAt, usageAsOf, now }: InstallFacts): boolean {
  return activatedAt !== null && now.getTime() - usageAsOf.getTime() > FRESH_MS;
}
