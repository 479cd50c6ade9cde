import type { Logger } from 'pino';
import {
  type KnownEsim,
  type ProviderEsimRef,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
} from '../esim-provider.js';
import type { ProviderUsageReport } from '../live-provider.js';
import {
  arrayAt,
  asObject,
  figureOrNullAt,
  instantOrNullAt,
  ProviderResponseInvalid,
  type ResponseObject,
  textAt,
  usableOrNull,
  valueAt,
} from '../http/index.js';
import { gigabytesToBytes } from './zendit-amounts.js';
import { type ZenditApi, ZenditStatus } from './zendit-api.js';

/** After so many eSIMs in a row without an answer it is Zendit that is in trouble, and no longer an eSIM. */
const FAILURES_IN_A_ROW = 3;
/** A 500 may be about one eSIM; these are about the whole service. */
const WHOLE_SERVICE: readonly number[] = [502, 503, 504];

/**
 * Reads eSIMs one by one, so that one that is answered with an error, or in a form that nobody knows, keeps none of
 * the others from being read: it is missing among the readings, and whoever asked asks again.
 */
export class ZenditEsimReader {
  constructor(
    private readonly api: Pick<ZenditApi, 'findPlans'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  /**
   * One after the other: polls may only join the last of the pace's backlog.
   * @throws ProviderUnavailable, ProviderOutcomeUnknown when the trouble is not that of single eSIMs
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
        // What was read before is kept; those behind are asked for again.
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

/** An answer that says nothing, or none; not a circuit, a limit, a key or a connection that takes no calls. */
function isAboutOneEsim(error: unknown): boolean {
  if (error instanceof ZenditStatus) return !WHOLE_SERVICE.includes(error.status);
  return error instanceof ProviderOutcomeUnknown && !(error instanceof ProviderUnavailable);
}

interface Plan {
  readonly isActive: boolean;
  readonly startAt: Date | null;
  readonly endAt: Date | null;
  /** Null: unknown. */
  readonly totalBytes: number | null;
  readonly remainingBytes: number | null;
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
  if (isSpent && live.some(({ totalBytes }) => (totalBytes ?? 0) > 0)) return 'depleted';
  return live.some(({ isActive }) => isActive) ? 'active' : 'issued';
}

function countersOf(plans: readonly Plan[]): Pick<ProviderUsageReport, 'usedBytes' | 'totalBytes'> {
  const counters = { usedBytes: 0, totalBytes: 0 };
  for (const { totalBytes, remainingBytes, unlimited } of plans) {
    // The sum of some plans would look like a usage that fell.
    if (unlimited || totalBytes === null || remainingBytes === null)
      return { usedBytes: null, totalBytes: null };
    counters.totalBytes += totalBytes;
    // A plan that has more left than it began with takes nothing from the usage of the others.
    counters.usedBytes += Math.max(0, totalBytes - remainingBytes);
  }
  return counters;
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
    totalBytes: bytesAt(plan, 'initialDataGB'),
    remainingBytes: remainingBytesOf(plan),
    unlimited: valueAt(plan, 'unlimited') === true,
  };
}

/** Null for what is no amount: the rest of the plan is of use without it. */
function bytesAt(plan: ResponseObject, key: string): number | null {
  const figure = figureOrNullAt(plan, key);
  return figure === null ? null : usableOrNull(() => gigabytesToBytes(figure, key));
}

/** A counter that ran a little below zero says that nothing is left. */
function remainingBytesOf(plan: ResponseObject): number | null {
  const figure = figureOrNullAt(plan, 'remainingDataGB');
  return figure !== null && figure < 0 ? 0 : bytesAt(plan, 'remainingDataGB');
}

/** For so long after a top-up, or after a first look in vain, an empty list may be one that lags. */
const LAG_MS = 600_000;
/** The last level before the end of which partners are told. */
const NEARLY_ALL_PERCENT = 80;

/**
 * What it means that Zendit lists no plan of an eSIM; null: nothing, so look again.
 *
 * - Nobody ever saw it in use: `issued`. It has no plan yet, or the read lags; its end is our own clock's matter.
 * - Its validity is over: `expired`.
 * - It was in use, 80 % of its data at least, and its validity goes on: the plan has left the list with its data, so it is `depleted`. A reading
 *   that says so takes nothing back, therefore one empty list is not enough: the look before must have been in vain as
 *   well, a lag ago, and no top-up may be on its way into the list. Unlimited data do not run out.
 */
function withoutPlans(
  { providerEsimId, known }: ProviderEsimRef,
  profileStatus: ProviderUsageReport['profileStatus'],
  asOf: Date,
): ProviderUsageReport | null {
  const status = known?.activatedAt ? endOf(known, asOf) : 'issued';
  if (status === null) return null;
  const told = { usedBytes: null, totalBytes: null, activatedAt: null, expiresAt: null };
  return { providerEsimId, status, profileStatus, ...told, asOf };
}

function endOf(known: KnownEsim, asOf: Date): 'expired' | 'depleted' | null {
  const isLongAgo = (since: Date) => asOf.getTime() - since.getTime() >= LAG_MS;
  if (known.toppedUpAt && !isLongAgo(known.toppedUpAt)) return null;
  if (known.expiresAt && known.expiresAt <= asOf) return 'expired';
  if (known.totalBytes === null || known.usedBytes === 0) return null;
  if (known.usedBytes >= known.totalBytes) return 'depleted';
  // A look in vain may have been an error: only data that was nearly used up is believed to have run out.
  if (known.usedBytes * 100 < known.totalBytes * NEARLY_ALL_PERCENT) return null;
  return known.lookedInVainAt && isLongAgo(known.lookedInVainAt) ? 'depleted' : null;
}
