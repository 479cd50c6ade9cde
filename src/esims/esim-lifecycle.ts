import { AppError } from '../common/errors/index.js';
import type { NewEvent } from '../events/index.js';
import type { UsageSource } from './esim.js';
import type { EsimEntity } from './esim.entity.js';

/** Levels of `esim.usage.threshold`, in percent (spec section 8). */
export const USAGE_THRESHOLDS = [50, 80, 100] as const;

const DAY_MS = 86_400_000;

/** What somebody saw of an eSIM: a callback, a poll or a simulation (D24). */
export type EsimObservation =
  | { readonly kind: 'activated' }
  /** `usedBytes` is the total used so far, not the difference. */
  | { readonly kind: 'used'; readonly usedBytes: number; readonly source: UsageSource }
  | { readonly kind: 'validity_ended' };

/** What an observation changes, and what partners are told about it. */
export interface EsimTransition {
  readonly changes: Partial<EsimEntity>;
  readonly events: readonly NewEvent[];
}

const NOTHING: EsimTransition = { changes: {}, events: [] };

/**
 * The one reducer of eSIM states: whoever reports, the same observation gives the same change and the same events
 * (D23, D24). Pure; the caller holds the row's lock.
 * @param now the database's time (D40)
 * @throws AppError `esim_not_ready` when the state does not allow what was observed.
 */
export function observe(esim: EsimEntity, observation: EsimObservation, now: Date): EsimTransition {
  switch (observation.kind) {
    case 'activated':
      return activate(esim, now);
    case 'used':
      return use(esim, observation.usedBytes, observation.source, now);
    case 'validity_ended':
      return expire(esim, now);
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
      // on_purchase set it at issue; the other policies start now.
      expiresAt: esim.expiresAt ?? new Date(now.getTime() + esim.validityDays * DAY_MS),
    },
    events: [{ type: 'esim.activated', ...about(esim, now), data: identity(esim) }],
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
    events: reached.map((level) => ({
      type: 'esim.usage.threshold',
      ...about(esim, now),
      data: {
        ...identity(esim),
        threshold_percent: level,
        used_bytes: usedBytes,
        total_bytes: totalBytes,
        as_of: now.toISOString(),
      },
    })),
  };
}

/** Compared in integers of any size: used x 100 leaves the safe integers above 90 TB (D24). */
function hasReached(usedBytes: number, totalBytes: number, percent: number): boolean {
  return BigInt(usedBytes) * 100n >= BigInt(totalBytes) * BigInt(percent);
}

function expire(esim: EsimEntity, now: Date): EsimTransition {
  if (esim.status === 'expired') return NOTHING;
  if (esim.status === 'canceled') throw new AppError('esim_not_ready');
  const reason = esim.activatedAt === null && esim.expiresAt === null ? 'never_used' : 'validity_ended';
  return {
    changes: { status: 'expired', expiresAt: earlier(esim.expiresAt, now) },
    events: [{ type: 'esim.expired', ...about(esim, now), data: { ...identity(esim), reason } }],
  };
}

function earlier(a: Date | null, b: Date): Date {
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
