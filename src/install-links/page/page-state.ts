import { DAY_MS } from '../../common/durations.js';
import type { InstallFacts } from './install-page.repository.js';

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

/** Whether the measured use is too old to be shown. An eSIM that was never used has none to miss. */
export function isStale({ activatedAt, usageAsOf, now }: InstallFacts): boolean {
  return activatedAt !== null && now.getTime() - usageAsOf.getTime() > FRESH_MS;
}
