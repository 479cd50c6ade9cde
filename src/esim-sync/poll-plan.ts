import { DAY_MS, HOUR_MS, MINUTE_MS } from '../common/durations.js';
import { type EsimEntity, USAGE_THRESHOLDS } from '../esims/index.js';

/** Poll interval of an eSIM that is about to change. */
export const OFTEN_MS = 30 * MINUTE_MS;
/** Poll interval of an eSIM in use whose next threshold is far away. */
export const IN_USE_MS = 6 * HOUR_MS;
/** Poll interval when all data is used. Only expiry or a top-up can follow, and we know of both without a poll. */
export const SPENT_MS = 12 * HOUR_MS;
/** Poll interval of a dormant eSIM, which has not been installed since its issue. */
export const DORMANT_MS = DAY_MS;
/** Most eSIMs are installed soon after the purchase; after this time an eSIM counts as dormant. */
const NEW_MS = 2 * HOUR_MS;
/** An installed eSIM without use for this long is dormant too. */
const UNUSED_MS = DAY_MS;
/** Polls are frequent within this time of the recorded expiry, in case the provider has moved it. */
const NEAR_END_MS = 2 * HOUR_MS;

export type PolledEsim = Pick<
  EsimEntity,
  | 'status'
  | 'profileStatus'
  | 'createdAt'
  | 'activatedAt'
  | 'expiresAt'
  | 'usedBytes'
  | 'totalBytes'
  | 'thresholdsCrossed'
  | 'plans'
>;

/**
 * Milliseconds until the next poll of an eSIM; null when nothing can change any more. Callbacks are optional: they only
 * bring a poll forward.
 *
 * Example: 100,000 live eSIMs at a provider that permits 8 calls per second and returns one eSIM per call (the worst
 * case), sold over the last half year in the usual pattern:
 *
 *     60,000 dormant                               every 24 h        0.69 calls/s
 *      1,500 new or installed, unused              every 30 min      0.83
 *     28,500 in use, thresholds far for 9 of 10    every 6 h .. 30 min   about 2
 *     10,000 depleted                              every 12 h        0.23
 *                                                                    about 3.7
 *
 * That is less than half of the 8, so orders, top-ups and the catalog keep the other half; `test/esim-sync` checks the
 * sum. Polls have the lowest priority at the rate limiter anyway. A provider that returns 500 eSIMs per call needs only
 * a fraction, because eSIMs due together are read together, neighbors by issue time first. After an outage everything
 * is due. One eSIM per call then takes 100,000 / 8 = 3.5 h, and pages take a few minutes. Hints come first, then the
 * longest due.
 */
export function pollDelayMs(esim: PolledEsim, now: Date): number | null {
  switch (esim.status) {
    case 'expired':
    case 'canceled':
      return null;
    case 'issued':
      return isExpectedToStart(esim, now) ? OFTEN_MS : DORMANT_MS;
    case 'depleted':
      // Below 100 %, a pass has stopped for the day.
      return esim.thresholdsCrossed.includes(100) ? SPENT_MS : OFTEN_MS;
    case 'suspended':
      return SPENT_MS;
    case 'active':
      return isNearEnd(esim, now) ? OFTEN_MS : clamp(levelIsAwayMs(esim, now) / 2, OFTEN_MS, IN_USE_MS);
  }
}

function isExpectedToStart({ profileStatus, createdAt }: PolledEsim, now: Date): boolean {
  const isInstalled = profileStatus !== 'released' && profileStatus !== 'deleted';
  return now.getTime() - createdAt.getTime() < (isInstalled ? UNUSED_MS : NEW_MS);
}

/** Whether the eSIM or one of its plans ends soon. */
function isNearEnd({ expiresAt, plans }: PolledEsim, now: Date): boolean {
  const isSoon = (end: Date) => end.getTime() - now.getTime() < NEAR_END_MS;
  if (expiresAt !== null && isSoon(expiresAt)) return true;
  return plans.some(
    ({ status, endsAt }) => status === 'active' && endsAt !== null && isSoon(new Date(endsAt)),
  );
}

/** Estimated time to the next threshold at the current rate of use. */
function levelIsAwayMs(esim: PolledEsim, now: Date): number {
  const { usedBytes, totalBytes, activatedAt, thresholdsCrossed } = esim;
  const next = USAGE_THRESHOLDS.find((level) => !thresholdsCrossed.includes(level));
  if (totalBytes === null || next === undefined || activatedAt === null) return Infinity;
  const inUseMs = now.getTime() - activatedAt.getTime();
  // A traveler who has just landed may use any amount.
  if (inUseMs < HOUR_MS) return 0;
  const missingBytes = (totalBytes / 100) * next - usedBytes;
  return (missingBytes / usedBytes) * inUseMs;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
