import type { EventData, NewEvent } from '../events/index.js';
import type { PendingAction } from './esim.js';
import type { EsimEntity } from './esim.entity.js';

/** Levels of `esim.usage.threshold`, in percent (spec section 8). */
export const USAGE_THRESHOLDS = [50, 80, 100] as const;

/** Levels of `esim.expiring`: hours before the end of the validity. */
export const EXPIRING_HOURS = [72, 24] as const;

type ControlEventType = 'esim.suspended' | 'esim.resumed' | 'esim.revoked';
type EsimEventType =
  | 'esim.activated'
  | 'esim.expired'
  | 'esim.expiring'
  | 'esim.profile.changed'
  | 'esim.usage.level'
  | 'esim.usage.threshold'
  | ControlEventType;

/** An eSIM event before the change is written, and therefore without the eSIM's new version (D48). */
export type EsimEvent = {
  [Type in EsimEventType]: Omit<Extract<NewEvent, { type: Type }>, 'data'> & {
    readonly data: Omit<EventData[Type], 'version'>;
  };
}[EsimEventType];

/** The changes and partner events that an observation causes. */
export interface EsimTransition {
  readonly changes: Partial<EsimEntity>;
  readonly events: readonly EsimEvent[];
}

export const NOTHING: EsimTransition = { changes: {}, events: [] };

/** Compares in integers of any size: used x 100 exceeds the safe integers above 90 TB (D24). */
export function hasReached(usedBytes: number, totalBytes: number, percent: number): boolean {
  return BigInt(usedBytes) * 100n >= BigInt(totalBytes) * BigInt(percent);
}

export function activatedEvent(esim: EsimEntity, now: Date): EsimEvent {
  return { type: 'esim.activated', ...about(esim, now), data: identity(esim) };
}

export function expiredEvent(
  esim: EsimEntity,
  reason: 'never_used' | 'validity_ended',
  now: Date,
): EsimEvent {
  return { type: 'esim.expired', ...about(esim, now), data: { ...identity(esim), reason } };
}

/** `reason` is the partner's if its own request is in progress, whoever reports the effect first. */
export function controlEvent(esim: EsimEntity, type: ControlEventType, now: Date): EsimEvent {
  const isRequested = esim.pendingAction !== null && EVENT_OF[esim.pendingAction] === type;
  return {
    type,
    ...about(esim, now),
    data: { ...identity(esim), reason: isRequested ? esim.actionReason : null },
  };
}

const EVENT_OF: Readonly<Record<PendingAction, ControlEventType | null>> = {
  suspend: 'esim.suspended',
  resume: 'esim.resumed',
  revoke: 'esim.revoked',
  replace: null,
};

/** One event per threshold in `levels`, in order; `usage` is the value they were compared with. */
export function thresholdEvents(
  esim: EsimEntity,
  levels: readonly number[],
  usage: { readonly usedBytes: number; readonly totalBytes: number; readonly asOf: Date },
  now: Date,
): readonly EsimEvent[] {
  return levels.map((level) => ({
    type: 'esim.usage.threshold',
    ...about(esim, now),
    data: {
      ...identity(esim),
      threshold_percent: level,
      used_bytes: usage.usedBytes,
      total_bytes: usage.totalBytes,
      as_of: usage.asOf.toISOString(),
    },
  }));
}

export function profileEvents(
  esim: EsimEntity,
  { profileStatus }: Partial<EsimEntity>,
  now: Date,
): readonly EsimEvent[] {
  if (profileStatus === undefined || profileStatus === esim.profileStatus) return [];
  const data = { ...identity(esim), profile_status: profileStatus, previous: esim.profileStatus };
  return [{ type: 'esim.profile.changed', ...about(esim, now), data }];
}

/**
 * The transition's events, with one per level in `levels` that it crosses; an expiry stays last. A level that is a
 * threshold is crossed with its threshold, under the same rules. Others compare the usage before and after, which only
 * grows; a top-up that raises the total opens a new cycle, as for thresholds (D24).
 */
export function withLevels(
  esim: EsimEntity,
  { changes, events }: EsimTransition,
  levels: readonly number[],
  now: Date,
): readonly EsimEvent[] {
  const { totalBytes } = esim;
  const { usedBytes, usageAsOf, status } = { ...esim, ...changes };
  if (totalBytes === null || esim.status === 'expired' || status === 'canceled') return events;
  const crossed = new Set(
    events.flatMap((event) => (event.type === 'esim.usage.threshold' ? [event.data.threshold_percent] : [])),
  );
  const isCrossed = (level: number): boolean =>
    USAGE_THRESHOLDS.some((threshold) => threshold === level)
      ? crossed.has(level)
      : hasReached(usedBytes, totalBytes, level) && !hasReached(esim.usedBytes, totalBytes, level);
  const crossings = levels.filter(isCrossed).map((level): EsimEvent => ({
    type: 'esim.usage.level',
    ...about(esim, now),
    data: {
      ...identity(esim),
      percent: level,
      used_bytes: usedBytes,
      total_bytes: totalBytes,
      as_of: usageAsOf.toISOString(),
    },
  }));
  const isLast = ({ type }: EsimEvent): boolean => type === 'esim.expired';
  return [...events.filter((event) => !isLast(event)), ...crossings, ...events.filter(isLast)];
}

/** @param level of `levelOfWarning` */
export function expiringEvent(
  esim: EsimEntity,
  { hours, expiresAt }: { readonly hours: number; readonly expiresAt: Date },
  now: Date,
): EsimEvent {
  const data = { ...identity(esim), hours_left: hours, expires_at: expiresAt.toISOString() };
  return { type: 'esim.expiring', ...about(esim, now), data };
}

/** The event for recording: `esim.activated` keeps its three fields. */
export function withVersion(event: EsimEvent, version: number): NewEvent {
  if (event.type === 'esim.activated') return event;
  // Spreading a union of events loses which data belongs to which type.
  return { ...event, data: { ...event.data, version } } as NewEvent;
}

export function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}

export function earlier(a: Date | null, b: Date): Date {
  return a !== null && a < b ? a : b;
}

function about(
  esim: EsimEntity,
  now: Date,
): { partnerId: string; mode: EsimEntity['mode']; happenedAt: Date } {
  return { partnerId: esim.partnerId, mode: esim.mode, happenedAt: now };
}

function identity(esim: EsimEntity): { esim_id: string; order_id: string; iccid: string } {
  return { esim_id: esim.id, order_id: esim.orderId, iccid: esim.iccid };
}
