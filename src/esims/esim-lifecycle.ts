import { DAY_MS } from '../common/durations.js';
import { AppError } from '../common/errors/index.js';
import type { ProviderFailure } from '../providers/index.js';
import type { PendingAction, StoredPlan, UsageSource } from './esim.js';
import type { EsimEntity } from './esim.entity.js';
import { currentPlanRemainingBytes, hasOpenEnd, isOver } from './esim-plans.js';
import { consumed, endOfCurrentPlan, withAdded, withNextStarted, withQueued } from './sandbox-plans.js';
import { applyUsageReport, type UsageReport } from './usage-report.js';
import { warningAfter } from './expiry-warning.js';
import {
  activatedEvent,
  controlEvent,
  earlier,
  type EsimEvent,
  type EsimTransition,
  expiredEvent,
  hasReached,
  later,
  NOTHING,
  profileEvents,
  thresholdEvents,
  USAGE_THRESHOLDS,
} from './esim-transition.js';

/** An observation from a callback, poll, simulation or top-up. */
export type EsimObservation =
  | { readonly kind: 'activated' }
  | SimulatedUsage
  | { readonly kind: 'validity_ended' }
  | ({ readonly kind: 'reported' } & UsageReport)
  | ({ readonly kind: 'topped_up' } & AppliedTopup)
  | ({ readonly kind: 'acted' } & ActionOutcome);

/** Data that a Sandbox device has used. */
export interface SimulatedUsage {
  readonly kind: 'used';
  /** The total used so far, not the difference. */
  readonly usedBytes: number;
  /** Whether the plan goes on slower after its data (D59). */
  readonly goesOn: boolean;
  readonly source: UsageSource;
}

/** The outcome of the eSIM's pending action. */
export interface ActionOutcome {
  /** Why the action did not take effect; null if it did. */
  readonly failure: ProviderFailure | null;
  /** Whether the plan goes on slower after its data (D59). */
  readonly goesOn: boolean;
}

/** A top-up's amounts, and the eSIM's resulting totals at the provider; null if it does not report them. */
export interface AppliedTopup {
  /** Null when it adds days only. */
  readonly dataBytes: number | null;
  readonly validityDays: number;
  readonly upstreamTotalBytes: number | null;
  readonly upstreamExpiresAt: Date | null;
  /** Package of a Sandbox top-up whose plan waits behind the one in use; null for every other top-up. */
  readonly queuedPackageId: string | null;
}

/**
 * The one reducer of eSIM states: the same observation causes the same change and events, whoever reports it (D23,
 * D24). Pure; the caller holds the row's lock.
 * @param now the database's time (D40)
 * @throws AppError `esim_not_ready` when the state does not permit the observation
 */
export function observe(esim: EsimEntity, observation: EsimObservation, now: Date): EsimTransition {
  const { changes, events } = reduce(esim, observation, now);
  const expiryWarningAt = warningAfter(esim, changes, now);
  const isSameWarning = expiryWarningAt?.getTime() === esim.expiryWarningAt?.getTime();
  const isFirst = ({ type }: EsimEvent): boolean => type === 'esim.activated';
  return {
    changes: isSameWarning ? changes : { ...changes, expiryWarningAt },
    events: [
      ...events.filter(isFirst),
      ...profileEvents(esim, changes, now),
      ...events.filter((event) => !isFirst(event)),
    ],
  };
}

function reduce(esim: EsimEntity, observation: EsimObservation, now: Date): EsimTransition {
  switch (observation.kind) {
    case 'activated':
      return activate(esim, now);
    case 'used':
      return use(esim, observation, now);
    case 'validity_ended':
      return expire(esim, now);
    case 'topped_up':
      return { changes: topUp(esim, observation, now), events: [] };
    case 'acted':
      return act(esim, observation, now);
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
      plans: withNextStarted(esim.plans, now),
      // on_purchase has set it at issue; the other policies start now.
      expiresAt: esim.expiresAt ?? new Date(now.getTime() + esim.validityDays * DAY_MS),
    },
    events: [activatedEvent(esim, now)],
  };
}

function use(esim: EsimEntity, usage: SimulatedUsage, now: Date): EsimTransition {
  if (esim.status !== 'active' && esim.status !== 'depleted') throw new AppError('esim_not_ready');
  const plans = consumed(esim.plans, usage.usedBytes - esim.usedBytes, now);
  return count(esim, usage, plans, now);
}

/** Raises the usage to `usedBytes`, and announces the thresholds that it crosses. */
function count(
  esim: EsimEntity,
  { usedBytes, goesOn, source }: SimulatedUsage,
  plans: StoredPlan[],
  now: Date,
): EsimTransition {
  const expiresAt = endOfCurrentPlan(plans) ?? esim.expiresAt;
  const base: Partial<EsimEntity> = { usedBytes, usageAsOf: now, usageSource: source, plans, expiresAt };
  const { totalBytes } = esim;
  if (totalBytes === null) return { changes: base, events: [] };
  const reached = USAGE_THRESHOLDS.filter(
    (level) => !esim.thresholdsCrossed.includes(level) && hasReached(usedBytes, totalBytes, level),
  );
  return {
    changes: {
      ...base,
      status: usedBytes >= totalBytes && !goesOn ? 'depleted' : esim.status,
      thresholdsCrossed: [...esim.thresholdsCrossed, ...reached].sort((a, b) => a - b),
    },
    events: thresholdEvents(esim, reached, { usedBytes, totalBytes, asOf: now }, now),
  };
}

function expire(esim: EsimEntity, now: Date): EsimTransition {
  if (esim.status === 'expired') return NOTHING;
  if (esim.status === 'canceled') throw new AppError('esim_not_ready');
  if (hasOpenEnd(esim)) return startNextPlan(esim, now);
  const reason = esim.activatedAt === null && esim.expiresAt === null ? 'never_used' : 'validity_ended';
  return {
    changes: { status: 'expired', expiresAt: earlier(esim.expiresAt, now) },
    events: [expiredEvent(esim, reason, now)],
  };
}

/** Ends the plan in use although another one waits behind it. Data that was left counts as used, as in Live. */
function startNextPlan(esim: EsimEntity, now: Date): EsimTransition {
  const lostBytes = currentPlanRemainingBytes(esim) ?? 0;
  const usage = {
    kind: 'used',
    usedBytes: esim.usedBytes + lostBytes,
    goesOn: false,
    source: 'simulated',
  } as const;
  return count(esim, usage, withNextStarted(esim.plans, now), now);
}

/**
 * Ends the pending action. A reading may have shown its effect before: then there is nothing to announce. An eSIM that
 * ended meanwhile stays ended.
 */
function act(esim: EsimEntity, { failure, goesOn }: ActionOutcome, now: Date): EsimTransition {
  const action = esim.pendingAction;
  if (action === null) return NOTHING;
  const reason = failure ?? endOf(esim, action);
  const ended = { pendingAction: null, actionReason: null, actionDueAt: null, actionSentAt: null } as const;
  const soon = esim.mode === 'live' && !isOver(esim.status) ? { nextPollAt: now } : {};
  if (reason) return { changes: { ...ended, ...soon, actionFailure: { action, ...reason } }, events: [] };
  const changes = { ...ended, actionFailure: null, actedAt: now };
  switch (action) {
    case 'suspend':
      if (esim.status === 'suspended') return { changes, events: [] };
      return {
        changes: { ...changes, status: 'suspended' },
        events: [controlEvent(esim, 'esim.suspended', now)],
      };
    case 'resume':
      if (esim.status !== 'suspended') return { changes, events: [] };
      return {
        changes: { ...changes, ...soon, status: statusInUse(esim, goesOn) },
        events: [controlEvent(esim, 'esim.resumed', now)],
      };
    case 'revoke':
      return {
        changes: { ...changes, status: 'canceled', revokedAt: now },
        events: esim.status === 'canceled' ? [] : [controlEvent(esim, 'esim.revoked', now)],
      };
    case 'replace':
      return { changes, events: [] };
  }
}

/** Why an eSIM that has ended can no longer be suspended or resumed; null if it can. */
function endOf({ status }: EsimEntity, action: PendingAction): ProviderFailure | null {
  if (action !== 'suspend' && action !== 'resume') return null;
  if (status === 'expired') return { code: 'esim_expired', reason: 'The eSIM has expired.' };
  return status === 'canceled' ? { code: 'provider_rejected', reason: 'The eSIM was revoked.' } : null;
}

/** The status of an eSIM that is not suspended any more. */
function statusInUse(
  { activatedAt, usedBytes, totalBytes }: EsimEntity,
  goesOn: boolean,
): EsimEntity['status'] {
  if (activatedAt === null) return 'issued';
  return totalBytes !== null && usedBytes >= totalBytes && !goesOn ? 'depleted' : 'active';
}

/** Schedules an immediate poll of a live eSIM: its provider may report an expiry that the top-up's response lacked. */
function topUp(esim: EsimEntity, topup: AppliedTopup, now: Date): Partial<EsimEntity> {
  return {
    ...addData(esim, topup),
    ...(topup.queuedPackageId === null
      ? addDays(esim, topup)
      : queue(esim, topup.queuedPackageId, topup, now)),
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
function addDays(esim: EsimEntity, topup: AppliedTopup): Partial<EsimEntity> {
  const { validityDays, upstreamExpiresAt } = topup;
  if (esim.status === 'expired' || esim.status === 'canceled') return {};
  const plans = esim.mode === 'sandbox' ? { plans: withAdded(esim.plans, topup) } : {};
  if (esim.expiresAt === null) return { ...plans, validityDays: esim.validityDays + validityDays };
  const extended = upstreamExpiresAt ?? new Date(esim.expiresAt.getTime() + validityDays * DAY_MS);
  return { ...plans, expiresAt: later(esim.expiresAt, extended) };
}

/** Adds a plan that waits behind the one in use, whose end stays. */
function queue(esim: EsimEntity, packageId: string, topup: AppliedTopup, now: Date): Partial<EsimEntity> {
  const plans = withQueued(esim, { ...topup, packageId }, now);
  return { pooled: false, plans, expiresAt: endOfCurrentPlan(plans) ?? esim.expiresAt };
}
