import type { ProviderUsageReport, ProviderEsimRef } from '../esim-provider.js';
import {
  type ResponseObject,
  arrayAt,
  asObject,
  instantOrNullAt,
  numberAt,
  textAt,
  ProviderResponseInvalid,
  valueAt,
} from '../http/index.js';
import { gigabytesToBytes } from './exact-bytes.js';
import { withoutPlans } from './zendit-without-plans.js';

interface Plan {
  readonly isActive: boolean;
  readonly startAt: Date | null;
  readonly endAt: Date | null;
  readonly totalBytes: number;
  readonly remainingBytes: number;
  readonly unlimited: boolean;
}

/**
 * An eSIM as its plans show it at `asOf`, the time of the call: Zendit does not say when it counted. Only active and
 * queued plans are promised to be listed, so an eSIM without one is judged by what we know of it (`withoutPlans`), and
 * null where that says nothing. ICCIDs are reused, so plans that ended before the eSIM was issued belong to somebody else.
 * @throws ProviderResponseInvalid
 */
export function toReading(
  esim: ProviderEsimRef,
  answer: ResponseObject,
  asOf: Date,
): ProviderUsageReport | null {
  const own = arrayAt(answer, 'list')
    .map((item) => readPlan(asObject(item, 'list')))
    .filter(({ endAt }) => endAt === null || endAt >= esim.issuedAt);
  const profileStatus = instantOrNullAt(answer, 'firstInstalledAt') ? 'installed' : 'unknown';
  if (own.length === 0) return withoutPlans(esim, profileStatus, asOf);
  const live = own.filter(({ endAt }) => endAt === null || endAt > asOf);
  // Plans that ended count only while nothing else is left to show.
  const shown = live.length > 0 ? live : own;
  return {
    providerEsimId: esim.providerEsimId,
    status: statusOf(live),
    profileStatus,
    ...countersOf(shown),
    activatedAt: earliest(own.filter(({ isActive }) => isActive).map(({ startAt }) => startAt)),
    expiresAt: expiryOf(shown),
    asOf,
  };
}

function statusOf(live: readonly Plan[]): ProviderUsageReport['status'] {
  if (live.length === 0) return 'expired';
  const isSpent = live.every(({ unlimited, remainingBytes }) => !unlimited && remainingBytes === 0);
  if (isSpent && live.some(({ totalBytes }) => totalBytes > 0)) return 'depleted';
  return live.some(({ isActive }) => isActive) ? 'active' : 'issued';
}

function countersOf(plans: readonly Plan[]): Pick<ProviderUsageReport, 'usedBytes' | 'totalBytes'> {
  if (plans.some(({ unlimited }) => unlimited)) return { usedBytes: null, totalBytes: null };
  const totalBytes = plans.reduce((sum, plan) => sum + plan.totalBytes, 0);
  const remainingBytes = plans.reduce((sum, plan) => sum + plan.remainingBytes, 0);
  return { usedBytes: Math.max(0, totalBytes - remainingBytes), totalBytes };
}

/** A queued plan has no end yet, so neither has the eSIM: null. */
function expiryOf(plans: readonly Plan[]): Date | null {
  const ends = plans.map(({ endAt }) => endAt);
  if (ends.includes(null)) return null;
  return new Date(Math.max(...ends.map((end) => end!.getTime())));
}

function earliest(instants: readonly (Date | null)[]): Date | null {
  const known = instants.filter((instant) => instant !== null);
  return known.length === 0 ? null : new Date(Math.min(...known.map((instant) => instant.getTime())));
}

function readPlan(plan: ResponseObject): Plan {
  const status = textAt(plan, 'status');
  if (status !== 'ACTIVE' && status !== 'QUEUED') throw new ProviderResponseInvalid('status');
  return {
    isActive: status === 'ACTIVE',
    startAt: instantOrNullAt(plan, 'startAt'),
    endAt: instantOrNullAt(plan, 'endAt'),
    totalBytes: gigabytesToBytes(numberAt(plan, 'initialDataGB'), 'initialDataGB'),
    remainingBytes: gigabytesToBytes(numberAt(plan, 'remainingDataGB'), 'remainingDataGB'),
    unlimited: valueAt(plan, 'unlimited') === true,
  };
}
