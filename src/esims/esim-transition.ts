import type { EventData, NewEvent } from '../events/index.js';
import type { PendingAction } from './esim.js';
import type { EsimEntity } from './esim.entity.js';

/** Levels of `esim.usage.threshold`, in percent (spec section 8). */
export const USAGE_THRESHOLDS = [50, 80, 100] as const;

/** Levels of `esim.expiring`: hours before the end of the validity. */
export const EXPIRING_HOURS = [72, 24] as const;

type ControlEventType = 'esim.suspended' | 'esim.resumed' | 'esim.revoked';
type EsimEventType = 'esim.activated' | 'esim.expired' | 'esim.usage.threshold' | ControlEventType;

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

/** The event for recording: `esim.activated` keeps its three fields. */
export function withVersion(event: EsimEvent, version: number): NewEvent {
  switch (event.type) {
    case 'esim.activated':
      return event;
    case 'esim.expired':
      return { ...event, data: { ...event.data, version } };
    case 'esim.usage.threshold':
      return { ...event, data: { ...event.data, version } };
    case 'esim.suspended':
    case 'esim.resumed':
    case 'esim.revoked':
      return { ...event, data: { ...event.data, version } };
  }
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
