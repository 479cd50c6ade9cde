import { isDeepStrictEqual } from 'node:util';
import { DAY_MS } from '../common/durations.js';
import type { ProviderUsageReport } from '../providers/index.js';
import type { EsimStatus, UsageSource } from './esim.js';
import type { EsimEntity } from './esim.entity.js';
import { plansAfter } from './esim-plans.js';
import {
  activatedEvent,
  controlEvent,
  earlier,
  type EsimEvent,
  type EsimTransition,
  expiredEvent,
  hasReached,
  later,
  thresholdEvents,
  USAGE_THRESHOLDS,
} from './esim-transition.js';

/** A provider's reading of an eSIM, queried by the worker. */
export interface UsageReport {
  readonly reading: ProviderUsageReport;
  /** Trigger of the query: a callback's hint or the poll plan. */
  readonly source: Exclude<UsageSource, 'simulated'>;
  /** Time of the query by the database's clock; `reading.asOf` may be hours older. */
  readonly askedAt: Date;
}

/** How long after a top-up a provider may still report the state before it. */
const TOPUP_LAG_MS = 600_000;

/** How long after a requested action a provider may still report the state before it. */
const ACTION_LAG_MS = 600_000;

/** The usage of an eSIM after a report. */
interface Usage {
  readonly usedBytes: number;
  readonly asOf: Date;
  readonly source: UsageSource;
  readonly crossed: readonly number[];
}

/**
 * The changes caused by a report. Reports may arrive late, twice and in any order. The final state is the same, and no
 * event is sent twice, because nothing here is ever undone (D23, D24):
 *
 * - `canceled` is final, and `expired` can only become `canceled`. An eSIM once in use stays in use; only `suspended`,
 *   `profile_status`, `expires_at` and the plans follow the newest report in both directions, ordered by `askedAt`. The
 *   profile status `unknown` means nothing. A report soon after a suspension or its end may be from before it.
 * - `used_bytes` is the highest figure ever reported. A falling counter changes nothing, and neither does an older
 *   figure, which is lower. `as_of` and `source` belong to that figure: the newest time at which it was reported.
 * - The total is our own sum of what was bought. `depleted` means all of it, because providers report it without an
 *   exact figure. A report with a larger total than ours includes a top-up that is not applied here yet, so it does not
 *   cross the 100 percent threshold. A smaller total soon after a top-up is from before it. Later it means that ended
 *   plans have left the counters, and the remainder counts.
 *
 * An eSIM that has ended still records usage, but sends no more events about it.
 */
export function applyUsageReport(esim: EsimEntity, report: UsageReport, now: Date): EsimTransition {
  const { reading, askedAt } = report;
  const isNewest = esim.readAt === null || askedAt >= esim.readAt;
  const activatedAt = activationAfter(esim, reading);
  const usage = usageAfter(esim, report, now);
  const isBeforeAction = esim.actedAt !== null && askedAt.getTime() < esim.actedAt.getTime() + ACTION_LAG_MS;
  const status = statusAfter(esim, reading, { activatedAt, usage, isNewest, isBeforeAction });
  const changes = changed(esim, {
    status,
    activatedAt,
    expiresAt:
      status === 'expired'
        ? endAfter(esim, report, { activatedAt, isNewest })
        : expiryAfter(esim, reading, { activatedAt, isNewest }),
    profileStatus:
      isNewest && reading.profileStatus !== 'unknown' ? reading.profileStatus : esim.profileStatus,
    usedBytes: usage.usedBytes,
    usageAsOf: usage.asOf,
    usageSource: usage.source,
    thresholdsCrossed: [...usage.crossed],
    ...(isNewest && reading.plans
      ? { pooled: false, plans: plansAfter(esim.plans, reading.plans, esim.readAt) }
      : {}),
    readAt: isNewest ? askedAt : esim.readAt,
  });
  return { changes, events: eventsOf(esim, { activatedAt, usage, status }, now) };
}

/** Whether the report predates a top-up that is already applied here. */
function isBehind(esim: EsimEntity, { totalBytes, asOf }: ProviderUsageReport): boolean {
  if (esim.toppedUpAt === null || esim.totalBytes === null || totalBytes === null) return false;
  return totalBytes < esim.totalBytes && asOf.getTime() < esim.toppedUpAt.getTime() + TOPUP_LAG_MS;
}

function saysExpired(esim: EsimEntity, reading: ProviderUsageReport): boolean {
  return reading.status === 'expired' && !isBehind(esim, reading);
}

function showsUse({ status, usedBytes, activatedAt }: ProviderUsageReport): boolean {
  if (status === 'active' || status === 'depleted' || (usedBytes ?? 0) > 0) return true;
  return status !== 'issued' && activatedAt !== null;
}

/** The earliest reported activation time, or else the time of the earliest counters that show use. */
function activationAfter(esim: EsimEntity, reading: ProviderUsageReport): Date | null {
  if (!showsUse(reading)) return esim.activatedAt;
  const told = reading.activatedAt ?? later(reading.asOf, esim.createdAt);
  return esim.activatedAt !== null && esim.activatedAt <= told ? esim.activatedAt : told;
}

function usageAfter(esim: EsimEntity, { reading, source }: UsageReport, now: Date): Usage {
  const figure = figureAfter(esim, reading, now);
  const { totalBytes, thresholdsCrossed } = esim;
  const isUnsettled = totalBytes !== null && reading.totalBytes !== null && reading.totalBytes > totalBytes;
  const crossed = USAGE_THRESHOLDS.filter((level) => {
    if (thresholdsCrossed.includes(level)) return true;
    if (totalBytes === null || (isUnsettled && level === 100 && reading.status !== 'depleted')) return false;
    return hasReached(figure?.usedBytes ?? esim.usedBytes, totalBytes, level);
  });
  if (figure) return { ...figure, source, crossed };
  return { usedBytes: esim.usedBytes, asOf: esim.usageAsOf, source: esim.usageSource, crossed };
}

/** The reading's figure if it is higher than ours, or equal and newer; null if ours stays. */
function figureAfter(
  esim: EsimEntity,
  reading: ProviderUsageReport,
  now: Date,
): Pick<Usage, 'usedBytes' | 'asOf'> | null {
  if (reading.usedBytes === null && reading.status !== 'depleted') return null;
  const usedBytes = countedBytes(esim, reading);
  // A fast clock would make every later figure look old.
  const asOf = reading.asOf > now ? now : reading.asOf;
  const isHigher = usedBytes > esim.usedBytes;
  const isNewer = usedBytes === esim.usedBytes && asOf > esim.usageAsOf;
  return isHigher || isNewer ? { usedBytes, asOf } : null;
}

/** The reading's usage relative to everything that was bought. */
function countedBytes(esim: EsimEntity, reading: ProviderUsageReport): number {
  const used = reading.usedBytes ?? 0;
  const { totalBytes } = esim;
  if (totalBytes === null || isBehind(esim, reading)) return used;
  // A pass of several days may stop for the rest of the day.
  const hasMoreDays = (esim.days ?? 1) > 1 || esim.toppedUpAt !== null;
  const isSpent = reading.status === 'depleted' && !(reading.goesOn && hasMoreDays);
  if (isSpent) return Math.max(totalBytes, used);
  // A total of 0 means that the provider does not know it.
  if (esim.toppedUpAt === null || !reading.totalBytes || reading.usedBytes === null) return used;
  return Math.max(used, totalBytes - Math.max(0, reading.totalBytes - used));
}

interface Findings {
  readonly activatedAt: Date | null;
  readonly isNewest: boolean;
}

interface StatusFindings {
  readonly usage: Usage;
  /** The provider may have been queried before it showed an action that has taken effect. */
  readonly isBeforeAction: boolean;
}

function statusAfter(
  esim: EsimEntity,
  reading: ProviderUsageReport,
  { activatedAt, usage, isNewest, isBeforeAction }: Findings & StatusFindings,
): EsimStatus {
  if (esim.status === 'canceled' || reading.status === 'canceled') return 'canceled';
  if (esim.status === 'expired') return 'expired';
  if (saysExpired(esim, reading)) return 'expired';
  const follows = isNewest && !isBeforeAction;
  const isSuspended = follows ? reading.status === 'suspended' : esim.status === 'suspended';
  if (isSuspended) return 'suspended';
  if (activatedAt === null) return 'issued';
  return isSpent(esim, reading, usage, isNewest) ? 'depleted' : 'active';
}

/**
 * Crossing all thresholds means that all data is used. Unlimited plans have no thresholds, and a plan that goes on
 * has not stopped after the last one (D59): there the newest report decides.
 */
function isSpent(esim: EsimEntity, reading: ProviderUsageReport, usage: Usage, isNewest: boolean): boolean {
  if (esim.totalBytes !== null && !reading.goesOn) return usage.crossed.includes(100);
  return isNewest ? reading.status === 'depleted' : esim.status === 'depleted';
}

/**
 * Before use, a provider reports the installation deadline, which is not the end of validity. A report soon after a
 * top-up may be from before it, so it does not shorten the validity.
 */
function expiryAfter(
  esim: EsimEntity,
  reading: ProviderUsageReport,
  { activatedAt, isNewest }: Findings,
): Date | null {
  const { expiresAt, toppedUpAt } = esim;
  if (activatedAt === null) return expiresAt;
  const told = reading.status === 'issued' ? null : reading.expiresAt;
  if (expiresAt === null || isEstimate(esim)) return told ?? validFrom(esim, activatedAt);
  if (told === null) return expiresAt;
  const isSoonAfterTopup =
    toppedUpAt !== null && reading.asOf.getTime() < toppedUpAt.getTime() + TOPUP_LAG_MS;
  if (isSoonAfterTopup) return later(expiresAt, told);
  return isNewest ? told : expiresAt;
}

/** End of an expired eSIM: the earliest known time, so never later than the provider's own report of the end. */
function endAfter(esim: EsimEntity, { reading, askedAt }: UsageReport, findings: Findings): Date | null {
  const hadEnded = esim.status === 'expired';
  const ends = [
    expiryAfter(hadEnded ? { ...esim, expiresAt: null } : esim, reading, findings),
    hadEnded ? esim.expiresAt : null,
    saysExpired(esim, reading) ? askedAt : null,
  ].filter((end) => end !== null);
  return ends.length === 0 ? null : ends.reduce((first, end) => earlier(first, end));
}

/** Whether the expiry is only our estimate. If so, an earlier start moves it. */
function isEstimate(esim: EsimEntity): boolean {
  if (esim.activatedAt === null || esim.expiresAt === null) return false;
  return validFrom(esim, esim.activatedAt).getTime() === esim.expiresAt.getTime();
}

function validFrom({ validityDays }: EsimEntity, start: Date): Date {
  return new Date(start.getTime() + validityDays * DAY_MS);
}

function eventsOf(
  esim: EsimEntity,
  after: { readonly activatedAt: Date | null; readonly usage: Usage; readonly status: EsimStatus },
  now: Date,
): readonly EsimEvent[] {
  if (esim.status === 'expired' || esim.status === 'canceled') return [];
  if (after.status === 'canceled') return [controlEvent(esim, 'esim.revoked', now)];
  const { usage, activatedAt } = after;
  const wasUsed = activatedAt !== null;
  const reached = usage.crossed.filter((level) => !esim.thresholdsCrossed.includes(level));
  return [
    ...(wasUsed && esim.activatedAt === null ? [activatedEvent(esim, now)] : []),
    ...(esim.totalBytes === null
      ? []
      : thresholdEvents(esim, reached, { ...usage, totalBytes: esim.totalBytes }, now)),
    ...suspensionEvents(esim, after.status, now),
    ...(after.status === 'expired'
      ? [expiredEvent(esim, wasUsed || esim.expiresAt !== null ? 'validity_ended' : 'never_used', now)]
      : []),
  ];
}

function suspensionEvents(esim: EsimEntity, after: EsimStatus, now: Date): readonly EsimEvent[] {
  if (after === esim.status || after === 'expired') return [];
  if (after === 'suspended') return [controlEvent(esim, 'esim.suspended', now)];
  return esim.status === 'suspended' ? [controlEvent(esim, 'esim.resumed', now)] : [];
}

/** Returns the `values` that differ from the eSIM's. */
function changed(esim: EsimEntity, values: Partial<EsimEntity>): Partial<EsimEntity> {
  return Object.fromEntries(
    Object.entries(values).filter(
      ([name, value]) => !isDeepStrictEqual(value, esim[name as keyof EsimEntity]),
    ),
  );
}
