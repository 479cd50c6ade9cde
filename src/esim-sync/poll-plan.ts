import { type EsimEntity, USAGE_THRESHOLDS } from '../esims/index.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Between two looks at an eSIM that is about to change. */
export const OFTEN_MS = 30 * MINUTE_MS;
/** Between two looks at one in use whose next level is far away. */
export const IN_USE_MS = 6 * HOUR_MS;
/** All is used: only its end or a top-up can follow, and those are known here first. */
export const SPENT_MS = 12 * HOUR_MS;
/** Dormant: not installed since it was issued. */
export const DORMANT_MS = 24 * HOUR_MS;
/** Most eSIMs are installed soon after they are bought; one that is not counts as dormant. */
const NEW_MS = 2 * HOUR_MS;
/** One that is installed and not used within this is dormant too. */
const UNUSED_MS = 24 * HOUR_MS;
/** An end that its provider moved is noticed before ours takes effect. */
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
>;

/**
 * Milliseconds until an eSIM is to be looked at again; null when nothing can change any more. Callbacks are not
 * needed for any of it: they only bring a look forward.
 *
 * 100,000 live eSIMs at a provider that takes 8 calls a second and answers one eSIM a call (the worst case), issued
 * over the last half year as travellers buy them:
 *
 *     60,000 dormant                               every 24 h        0.69 calls/s
 *      1,500 new or installed, unused              every 30 min      0.83
 *     28,500 in use, levels far away for 9 of 10   every 6 h .. 30 min   about 2
 *     10,000 depleted                              every 12 h        0.23
 *                                                                    about 3.7
 *
 * That is less than half of the 8, so orders, top-ups and the catalogue keep the other half; `test/esim-sync` checks
 * the sum. Polls join the pace with the lowest priority anyway. A provider that answers 500 eSIMs a call needs only
 * a part of it: what is due together is read together, neighbours in time of issue first. After an outage everything
 * is due: one by one that is 100,000 / 8 = 3.5 h, in pages a few minutes, oldest due first, hints before all.
 */
export function pollDelayMs(esim: PolledEsim, now: Date): number | null {
  switch (esim.status) {
    case 'expired':
    case 'canceled':
      return null;
    case 'issued':
      return isExpectedToStart(esim, now) ? OFTEN_MS : DORMANT_MS;
    case 'depleted':
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

function isNearEnd({ expiresAt }: PolledEsim, now: Date): boolean {
  return expiresAt !== null && expiresAt.getTime() - now.getTime() < NEAR_END_MS;
}

/** How long the next level is away at the speed of the use so far. A figure for planning only. */
function levelIsAwayMs(esim: PolledEsim, now: Date): number {
  const { usedBytes, totalBytes, activatedAt, thresholdsCrossed } = esim;
  const next = USAGE_THRESHOLDS.find((level) => !thresholdsCrossed.includes(level));
  if (totalBytes === null || next === undefined || activatedAt === null) return Infinity;
  const inUseMs = now.getTime() - activatedAt.getTime();
  // Somebody who has just landed may use anything.
  if (inUseMs < HOUR_MS) return 0;
  const missingBytes = (totalBytes / 100) * next - usedBytes;
  return (missingBytes / usedBytes) * inUseMs;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
