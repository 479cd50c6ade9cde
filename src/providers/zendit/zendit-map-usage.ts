import type { Logger } from 'pino';
import {
  type KnownEsim,
  type ProviderEsimRef,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../esim-provider.js';
import type { ProviderPlan, ProviderUsageReport } from '../live-provider.js';
import {
  arrayAt,
  asObject,
  figureOrNullAt,
  instantOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  textOrNullAt,
  usableOrNull,
  valueAt,
} from '../http/index.js';
import { gigabytesToBytes } from './zendit-amounts.js';
import { type ZenditApi, ZenditStatus } from './zendit-api.js';

/** After this many consecutive eSIMs without a response, the fault counts as Zendit's and not as an eSIM's. */
const FAILURES_IN_A_ROW = 3;
/** A 500 may concern one eSIM; these statuses concern the whole service. */
const WHOLE_SERVICE: readonly number[] = [502, 503, 504];

/**
 * Reads eSIMs one by one, so that an eSIM with an error or an unknown form does not block the others. Such an eSIM is
 * missing from the readings, and the poller reads it again later.
 */
export class ZenditEsimReader {
  constructor(
    private readonly api: Pick<ZenditApi, 'findPlans'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /**
   * Reads sequentially, because polls may join only a short backlog at the rate limiter.
   * @throws ProviderUnavailable, ProviderOutcomeUnknown when the fault does not concern single eSIMs
   */
  async readAll(
    esims: readonly ProviderEsimRef[],
    signal: AbortSignal,
  ): Promise<readonly ProviderUsageReport[]> {
    const readings: ProviderUsageReport[] = [];
    let failuresInARow = 0;
    for (const esim of esims) {
      try {
        const reading = await this.read(esim, signal);
        if (reading) readings.push(reading);
        failuresInARow = 0;
      } catch (error) {
        if (signal.aborted || !isAboutOneEsim(error)) throw error;
        this.skipped(esim, error);
        if (++failuresInARow < FAILURES_IN_A_ROW) continue;
        // Keep the readings so far; the remaining eSIMs are read again later.
        if (readings.length > 0) return readings;
        throw error;
      }
    }
    return readings;
  }

  private async read(esim: ProviderEsimRef, signal: AbortSignal): Promise<ProviderUsageReport | null> {
    const plans = await this.api.findPlans(esim.iccid, signal);
    if (plans === null) return null;
    try {
      return toReading(esim, plans, new Date());
    } catch (error) {
      if (!(error instanceof ProviderResponseInvalid)) throw error;
      this.skipped(esim, error);
      return null;
    }
  }

  private skipped({ providerEsimId }: ProviderEsimRef, error: unknown): void {
    const path = error instanceof ProviderResponseInvalid ? error.path : null;
    const status = error instanceof ZenditStatus ? error.status : null;
    this.logger.warn({ event: 'provider.reading_skipped', provider: 'zendit', providerEsimId, path, status });
  }
}

/**
 * Whether the fault may concern one eSIM: an error status or no response, rather than a circuit, limit, key or
 * connection that stops all calls.
 */
function isAboutOneEsim(error: unknown): boolean {
  if (error instanceof ZenditStatus) return !WHOLE_SERVICE.includes(error.status);
  return error instanceof ProviderOutcomeUnknown && !(error instanceof ProviderUnavailable);
}

interface Plan {
  readonly offerId: string | null;
  readonly isActive: boolean;
  readonly startAt: Date | null;
  readonly endAt: Date | null;
  /** Null when unknown. */
  readonly totalBytes: number | null;
  readonly remainingBytes: number | null;
  readonly unlimited: boolean;
}

/**
 * An eSIM's state from its plans at `asOf`, the time of the call, because Zendit does not say when it counted. Zendit
 * promises to list active and queued plans only. Our own record therefore decides about an eSIM without plans
 * (`withoutPlans`); the result is null when that is inconclusive. ICCIDs are reused, so plans that ended before the
 * eSIM was issued belong to someone else.
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
  // Ended plans count only when there are no others.
  const shown = live.length > 0 ? live : own;
  return {
    providerEsimId: esim.providerEsimId,
    status: statusOf(live),
    profileStatus,
    ...countersOf(shown),
    goesOn: false,
    plans: own.map((plan) => toPlan(plan, asOf)),
    activatedAt: earliest(own.filter(({ isActive }) => isActive).map(({ startAt }) => startAt)),
    expiresAt: expiryOf(shown),
    asOf,
  };
}

function toPlan(plan: Plan, asOf: Date): ProviderPlan {
  const { offerId: upstreamPackageId, unlimited, startAt: startsAt, endAt: endsAt } = plan;
  const { totalBytes, remainingBytes } = unlimited ? { totalBytes: null, remainingBytes: null } : plan;
  const status = endsAt !== null && endsAt <= asOf ? 'ended' : plan.isActive ? 'active' : 'queued';
  return { upstreamPackageId, status, totalBytes, remainingBytes, startsAt, endsAt };
}

function statusOf(live: readonly Plan[]): ProviderUsageReport['status'] {
  if (live.length === 0) return 'expired';
  const isSpent = live.every(({ unlimited, remainingBytes }) => !unlimited && remainingBytes === 0);
  if (isSpent && live.some(({ totalBytes }) => (totalBytes ?? 0) > 0)) return 'depleted';
  return live.some(({ isActive }) => isActive) ? 'active' : 'issued';
}

function countersOf(plans: readonly Plan[]): Pick<ProviderUsageReport, 'usedBytes' | 'totalBytes'> {
  const counters = { usedBytes: 0, totalBytes: 0 };
  for (const { totalBytes, remainingBytes, unlimited } of plans) {
    // The sum of only some plans would look like falling usage.
    if (unlimited || totalBytes === null || remainingBytes === null)
      return { usedBytes: null, totalBytes: null };
    counters.totalBytes += totalBytes;
    // A plan with more left than its total must not reduce the usage of the others.
    counters.usedBytes += Math.max(0, totalBytes - remainingBytes);
  }
  return counters;
}

/** Null for a queued plan: it has no end yet, so neither has the eSIM. */
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
    offerId: usableOrNull(() => textOrNullAt(plan, 'offerId')),
    isActive: status === 'ACTIVE',
    startAt: instantOrNullAt(plan, 'startAt'),
    endAt: instantOrNullAt(plan, 'endAt'),
    totalBytes: bytesAt(plan, 'initialDataGB'),
    remainingBytes: remainingBytesOf(plan),
    unlimited: valueAt(plan, 'unlimited') === true,
  };
}

/** Null for values that are not amounts: the rest of the plan is still useful. */
function bytesAt(plan: ResponseObject, key: string): number | null {
  const figure = figureOrNullAt(plan, key);
  return figure === null ? null : usableOrNull(() => gigabytesToBytes(figure, key));
}

/** A counter slightly below zero means that nothing is left. */
function remainingBytesOf(plan: ResponseObject): number | null {
  const figure = figureOrNullAt(plan, 'remainingDataGB');
  return figure !== null && figure < 0 ? 0 : bytesAt(plan, 'remainingDataGB');
}

/** For this long after a top-up, or after the first failed lookup, an empty list may be read lag. */
const LAG_MS = 600_000;
/** The last usage threshold before 100 %. */
const NEARLY_ALL_PERCENT = 80;

/**
 * State of an eSIM for which Zendit lists no plan; null when inconclusive, so look again.
 *
 * - Never seen in use: `issued`. It has no plan yet, or the read lags; our own clock ends it.
 * - Topped up within the last lag: inconclusive, because the list may not show the top-up yet.
 * - Its validity is over: `expired`.
 * - All of its data was used: `depleted`. Unlimited data does not run out.
 * - At least 80 % of its data was used: the plan ended with its data, so the eSIM is `depleted`. Such a reading cannot
 *   be undone, so one empty list is not enough. The lookup before must also have failed, at least one lag ago.
 */
function withoutPlans(
  { providerEsimId, known }: ProviderEsimRef,
  profileStatus: ProviderUsageReport['profileStatus'],
  asOf: Date,
): ProviderUsageReport | null {
  const status = known?.activatedAt ? endOf(known, asOf) : 'issued';
  if (status === null) return null;
  const told = { usedBytes: null, totalBytes: null, activatedAt: null, expiresAt: null };
  return { providerEsimId, status, profileStatus, ...told, goesOn: false, plans: [], asOf };
}

function endOf(known: KnownEsim, asOf: Date): 'expired' | 'depleted' | null {
  const isLongAgo = (since: Date) => asOf.getTime() - since.getTime() >= LAG_MS;
  if (known.toppedUpAt && !isLongAgo(known.toppedUpAt)) return null;
  if (known.expiresAt && known.expiresAt <= asOf) return 'expired';
  if (known.totalBytes === null || known.usedBytes === 0) return null;
  if (known.usedBytes >= known.totalBytes) return 'depleted';
  // An empty list may be an error: believe it only when the data was nearly used up.
  if (known.usedBytes * 100 < known.totalBytes * NEARLY_ALL_PERCENT) return null;
  return known.lookedInVainAt && isLongAgo(known.lookedInVainAt) ? 'depleted' : null;
}
