import { DAY_MS } from '../common/durations.js';
import type { EsimEntity } from './esim.entity.js';
import type { StoredPlan } from './esim.js';
import { ended, isOver } from './esim-plans.js';

// The Sandbox's queue of plans (D26). A live provider keeps its own: there, only readings change the stored plans.

/** The one plan of a pooled Sandbox eSIM, as it is listed once another plan waits behind it. */
function potOf(esim: EsimEntity): StoredPlan {
  const { totalBytes, usedBytes, activatedAt, expiresAt } = esim;
  return {
    upstreamPackageId: esim.packageId,
    status: activatedAt === null ? 'queued' : 'active',
    totalBytes,
    remainingBytes: totalBytes === null ? null : Math.max(0, totalBytes - usedBytes),
    startsAt: activatedAt?.toISOString() ?? null,
    endsAt: expiresAt?.toISOString() ?? null,
    lastListedAt: null,
    validityDays: esim.validityDays,
  };
}

/** The plans with a new one at the end of the queue. It starts at once if the plan in use has no data left. */
export function withQueued(
  esim: EsimEntity,
  topup: { readonly packageId: string; readonly dataBytes: number | null; readonly validityDays: number },
  now: Date,
): StoredPlan[] {
  const plans: StoredPlan[] = [
    ...(esim.pooled ? [potOf(esim)] : esim.plans),
    {
      upstreamPackageId: topup.packageId,
      status: 'queued',
      totalBytes: topup.dataBytes,
      remainingBytes: topup.dataBytes,
      startsAt: null,
      endsAt: null,
      lastListedAt: null,
      validityDays: topup.validityDays,
    },
  ];
  return esim.activatedAt === null || isOver(esim.status) ? plans : consumed(plans, 0, now);
}

/** The plans after `bytes` were used. A plan without data left makes way for the next one. */
export function consumed(plans: readonly StoredPlan[], bytes: number, now: Date): StoredPlan[] {
  const current = plans.find(({ status }) => status === 'active');
  if (!current || current.remainingBytes === null) return [...plans];
  const taken = Math.min(bytes, current.remainingBytes);
  const after = { ...current, remainingBytes: current.remainingBytes - taken };
  const changed = plans.map((plan) => (plan === current ? after : plan));
  if (after.remainingBytes > 0 || !plans.some(({ status }) => status === 'queued')) return changed;
  return consumed(withNextStarted(changed, now), bytes - taken, now);
}

/** Ends the plan in use, and starts the next one of the queue. */
export function withNextStarted(plans: readonly StoredPlan[], now: Date): StoredPlan[] {
  const next = plans.find(({ status }) => status === 'queued');
  return plans.map((plan) => {
    if (plan.status === 'active') return ended(plan, now);
    if (plan !== next) return plan;
    const endsAt = plan.endsAt ?? daysAfter(now, plan.validityDays ?? 0);
    return { ...plan, status: 'active', startsAt: now.toISOString(), endsAt };
  });
}

/** The plans after a top-up that adds to the plan in use, or to the first one in the queue. */
export function withAdded(
  plans: readonly StoredPlan[],
  { dataBytes, validityDays }: { readonly dataBytes: number | null; readonly validityDays: number },
): StoredPlan[] {
  const target =
    plans.find(({ status }) => status === 'active') ?? plans.find(({ status }) => status === 'queued');
  const plus = (value: number | null) => (value === null ? null : value + (dataBytes ?? 0));
  return plans.map((plan) => {
    if (plan !== target) return plan;
    return {
      ...plan,
      totalBytes: plus(plan.totalBytes),
      remainingBytes: plus(plan.remainingBytes),
      endsAt: plan.endsAt && daysAfter(new Date(plan.endsAt), validityDays),
      validityDays: plan.validityDays === null ? null : plan.validityDays + validityDays,
    };
  });
}

/** The end of the plan in use; null if none is. */
export function endOfCurrentPlan(plans: readonly StoredPlan[]): Date | null {
  const current = plans.find(({ status }) => status === 'active');
  return current?.endsAt ? new Date(current.endsAt) : null;
}

function daysAfter(start: Date, days: number): string {
  return new Date(start.getTime() + days * DAY_MS).toISOString();
}
