import type { NewEvent } from '../events/index.js';
import type { EsimEntity } from './esim.entity.js';

/** Levels of `esim.usage.threshold`, in percent (spec section 8). */
export const USAGE_THRESHOLDS = [50, 80, 100] as const;

export const DAY_MS = 86_400_000;

/** What an observation changes, and what partners are told about it. */
export interface EsimTransition {
  readonly changes: Partial<EsimEntity>;
  readonly events: readonly NewEvent[];
}

export const NOTHING: EsimTransition = { changes: {}, events: [] };

/** Compared in integers of any size: used x 100 leaves the safe integers above 90 TB (D24). */
export function hasReached(usedBytes: number, totalBytes: number, percent: number): boolean {
  return BigInt(usedBytes) * 100n >= BigInt(totalBytes) * BigInt(percent);
}

export function activatedEvent(esim: EsimEntity, now: Date): NewEvent {
  return { type: 'esim.activated', ...about(esim, now), data: identity(esim) };
}

export function expiredEvent(esim: EsimEntity, reason: 'never_used' | 'validity_ended', now: Date): NewEvent {
  return { type: 'esim.expired', ...about(esim, now), data: { ...identity(esim), reason } };
}

/** One event for each of `levels`, in their order; `usage` is what they were compared with. */
export function thresholdEvents(
  esim: EsimEntity,
  levels: readonly number[],
  usage: { readonly usedBytes: number; readonly totalBytes: number; readonly asOf: Date },
  now: Date,
): readonly NewEvent[] {
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
