import { DAY_MS } from '../common/durations.js';
import { AppError } from '../common/errors/index.js';
import type { UsageSource } from './esim.js';
import type { EsimEntity } from './esim.entity.js';
import { applyUsageReport, type UsageReport } from './usage-report.js';
import {
  activatedEvent,
  earlier,
  type EsimTransition,
  expiredEvent,
  hasReached,
  later,
  NOTHING,
  thresholdEvents,
  USAGE_THRESHOLDS,
} from './esim-transition.js';

/** An observation from a callback, poll, simulation or top-up. */
export type EsimObservation =
  | { readonly kind: 'activated' }
  /** `usedBytes` is the total used so far, not the difference. */
  | { readonly kind: 'used'; readonly usedBytes: number; readonly source: UsageSource }
  | { readonly kind: 'validity_ended' }
  | ({ readonly kind: 'reported' } & UsageReport)
  | ({ readonly kind: 'topped_up' } & AppliedTopup);

/** A top-up's amounts, and the eSIM's resulting totals at the provider; null if it does not report them. */
export interface AppliedTopup {
  /** Null when it adds days only. */
  readonly dataBytes: number | null;
  readonly validityDays: number;
  readonly upstreamTotalBytes: number | null;
  readonly upstreamExpiresAt: Date | null;
}

/**
 * The one reducer of eSIM states: the same observation causes the same change and events, whoever reports it (D23,
 * D24). Pure; the caller holds the row's lock.
 * @param now the database's time (D40)
 * @throws AppError `esim_not_ready` when the state does not permit the observation
 */
export function observe(esim: EsimEntity, observation: EsimObservation, now: Date): EsimTransition {
  switch (observation.kind) {
    case 'activated':
      return activate(esim, now);
    case 'used':
      return use(esim, observation.usedBytes, observation.source, now);
    case 'validity_ended':
      return expire(esim, now);
    case 'topped_up':
      return { changes: topUp(esim, observation, now), events: [] };
    case 'reported':
      return applyUsageReport(esim, observation, now);
  }
}

function activate(esim: EsimEntity, now: Date): EsimTransition {
  if (esim.status === 'active' || esim.status === 'depleted') return NOTHING;
  if (esim.status !== 'issued') throw new AppError('esim_not_ready');
  return {
    changes: {
      status: 'active',
      profileStatus: 'enabled',
      activatedAt: now,
      // on_purchase has set it at issue; the other policies start now.
      expiresAt: esim.expiresAt ?? new Date(now.getTime() + esim.validityDays * DAY_MS),
    },
    events: [activatedEvent(esim, now)],
  };
}

function use(esim: EsimEntity, usedBytes: number, source: UsageSource, now: Date): EsimTransition {
  if (esim.status !== 'active' && esim.status !== 'depleted') throw new AppError('esim_not_ready');
  const base: Partial<EsimEntity> = { usedBytes, usageAsOf: now, usageSource: source };
  const { totalBytes } = esim;
  if (totalBytes === null) return { changes: base, events: [] };
  const reached = USAGE_THRESHOLDS.filter(
    (level) => !esim.thresholdsCrossed.includes(level) && hasReached(usedBytes, totalBytes, level),
  );
  return {
    changes: {
      ...base,
      status: usedBytes >= totalBytes ? 'depleted' : esim.status,
      thresholdsCrossed: [...esim.thresholdsCrossed, ...reached].sort((a, b) => a - b),
    },
    events: thresholdEvents(esim, reached, { usedBytes, totalBytes, asOf: now }, now),
  };
}

function expire(esim: EsimEntity, now: Date): EsimTransition {
  if (esim.status === 'expired') return NOTHING;
  if (esim.status === 'canceled') throw new AppError('esim_not_ready');
  const reason = esim.activatedAt === null && esim.expiresAt === null ? 'never_used' : 'validity_ended';
  return {
    changes: { status: 'expired', expiresAt: earlier(esim.expiresAt, now) },
    events: [expiredEvent(esim, reason, now)],
  };
}

/** Schedules an immediate poll of a live eSIM: its provider may report an expiry that the top-up's response lacked. */
function topUp(esim: EsimEntity, topup: AppliedTopup, now: Date): Partial<EsimEntity> {
  return {
    ...addData(esim, topup),
    ...addDays(esim, topup),
    toppedUpAt: now,
    ...(esim.mode === 'live' ? { nextPollAt: now } : {}),
  };
}

/**
 * Starts a data cycle: thresholds of the new total that are already reached count as announced, and the others may be
 * announced again. An ended eSIM stays ended; only its total records the purchase.
 */
function addData(esim: EsimEntity, { dataBytes, upstreamTotalBytes }: AppliedTopup): Partial<EsimEntity> {
  if (esim.totalBytes === null || dataBytes === null) return {};
  const { usedBytes } = esim;
  // A poll may have read the new total before this top-up was applied: adding to it would count the top-up twice.
  const totalBytes =
    upstreamTotalBytes === null ? esim.totalBytes + dataBytes : Math.max(esim.totalBytes, upstreamTotalBytes);
  return {
    totalBytes,
    status: esim.status === 'depleted' && usedBytes < totalBytes ? 'active' : esim.status,
    thresholdsCrossed: USAGE_THRESHOLDS.filter((level) => hasReached(usedBytes, totalBytes, level)),
  };
}

/** Extends the validity by the top-up's days: moves its end, or lengthens it if it has not begun yet. */
function addDays(esim: EsimEntity, { validityDays, upstreamExpiresAt }: AppliedTopup): Partial<EsimEntity> {
  if (esim.status === 'expired' || esim.status === 'canceled') return {};
  if (esim.expiresAt === null) return { validityDays: esim.validityDays + validityDays };
  const extended = upstreamExpiresAt ?? new Date(esim.expiresAt.getTime() + validityDays * DAY_MS);
  return { expiresAt: later(esim.expiresAt, extended) };
}
