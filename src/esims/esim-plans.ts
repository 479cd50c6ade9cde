import type { ProviderPlan } from '../providers/index.js';
import type { EsimStatus, PlanStatus, StoredPlan } from './esim.js';
import type { EsimEntity } from './esim.entity.js';

/** A purchase that brought a plan: the eSIM's order, or a completed top-up. */
export interface PlanPurchase {
  readonly source: 'order' | 'topup';
  readonly id: string;
  readonly packageId: string;
  readonly upstreamPackageId: string;
}

/** A plan as partners see it. Null means that it is unknown. */
export interface EsimPlan {
  readonly id: string;
  readonly source: PlanPurchase['source'] | null;
  readonly purchaseId: string | null;
  readonly packageId: string | null;
  readonly status: PlanStatus;
  readonly totalBytes: number | null;
  readonly usedBytes: number | null;
  readonly remainingBytes: number | null;
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
  readonly asOf: Date;
}

/** A provider that keeps listing new plans of one eSIM must not fill its row. */
const MAX_STORED_PLANS = 100;

/**
 * The stored plans after a reading. A plan that was listed before and is missing now has ended. Plans have no id at the
 * provider: a started plan is recognized by its package and start, and a queued one by its package.
 */
export function plansAfter(
  before: readonly StoredPlan[],
  listed: readonly ProviderPlan[],
  lastReadAt: Date | null,
): StoredPlan[] {
  // A queued plan that starts is matched before one that still waits.
  const left = listed.map(toStored).toSorted(byStart);
  const take = (isSame: (plan: StoredPlan) => boolean): StoredPlan | undefined => {
    const at = left.findIndex(isSame);
    return at < 0 ? undefined : left.splice(at, 1)[0];
  };
  const isOfSamePackage = (a: StoredPlan, b: StoredPlan) => a.upstreamPackageId === b.upstreamPackageId;
  const started = before.map((plan) =>
    plan.startsAt === null
      ? undefined
      : take((one) => isOfSamePackage(one, plan) && one.startsAt === plan.startsAt),
  );
  const kept = before.map((plan, index) => {
    const now =
      started[index] ?? (plan.startsAt === null ? take((one) => isOfSamePackage(one, plan)) : undefined);
    return now ?? ended(plan, lastReadAt);
  });
  const plans = [...kept, ...left];
  let surplus = plans.length - MAX_STORED_PLANS;
  return plans.filter(({ status }) => status !== 'ended' || surplus-- <= 0).slice(0, MAX_STORED_PLANS);
}

function toStored(plan: ProviderPlan): StoredPlan {
  return {
    upstreamPackageId: plan.upstreamPackageId,
    status: plan.status,
    totalBytes: plan.totalBytes,
    remainingBytes: plan.remainingBytes,
    startsAt: plan.startsAt?.toISOString() ?? null,
    endsAt: plan.endsAt?.toISOString() ?? null,
    lastListedAt: null,
    validityDays: null,
  };
}

function byStart(a: StoredPlan, b: StoredPlan): number {
  if (a.startsAt === b.startsAt) return 0;
  if (a.startsAt === null || b.startsAt === null) return a.startsAt === null ? 1 : -1;
  return a.startsAt < b.startsAt ? -1 : 1;
}

/** The plan once it is no longer listed: its figures stay as last read. */
export function ended(plan: StoredPlan, at: Date | null): StoredPlan {
  return { ...plan, status: 'ended', lastListedAt: plan.lastListedAt ?? at?.toISOString() ?? null };
}

type PlannedEsim = Pick<EsimEntity, 'pooled' | 'plans' | 'status' | 'activatedAt'>;

/**
 * Whether a plan waits behind the one in use. Until it starts, its end is unknown, and so is the eSIM's. Then
 * `expiresAt` is only our estimate, or in Sandbox the end of the current plan.
 */
export function hasOpenEnd({ pooled, plans, status, activatedAt }: PlannedEsim): boolean {
  return !pooled && activatedAt !== null && !isOver(status) && plans.some((plan) => plan.status === 'queued');
}

/** Data left in the plan in use, without queued plans. Null if the provider shows one pot, or does not say. */
export function currentPlanRemainingBytes({
  pooled,
  plans,
  status,
  activatedAt,
}: PlannedEsim): number | null {
  if (pooled || plans.length === 0) return null;
  if (isOver(status)) return 0;
  const active = plans.filter((plan) => plan.status === 'active');
  if (active.length === 0) return activatedAt === null ? null : 0;
  return active.reduce<number | null>(
    (sum, { remainingBytes }) => (sum === null || remainingBytes === null ? null : sum + remainingBytes),
    0,
  );
}

/** Whether the eSIM has ended, and all of its plans with it. */
export function isOver(status: EsimStatus): boolean {
  return status === 'expired' || status === 'canceled';
}

/**
 * The eSIM's plans, one per purchase and in the order of purchase. If the provider shows one pot, only the first plan
 * has a status, and none has bytes. Otherwise a package's plans belong to its purchases in the order in which they
 * start. If their numbers differ, nobody knows which plan belongs to which purchase, and the ids are null.
 * @param purchases the order first, then the completed top-ups, oldest first
 */
export function plansOf(esim: EsimEntity, purchases: readonly PlanPurchase[]): readonly EsimPlan[] {
  if (esim.pooled) return purchases.map((purchase, index) => pooledPlan(esim, purchase, index === 0));
  const packages = new Set([
    ...purchases.map(({ upstreamPackageId }) => upstreamPackageId),
    ...esim.plans.map(({ upstreamPackageId }) => upstreamPackageId),
  ]);
  const matched = new Map<PlanPurchase, EsimPlan>();
  const unmatched: EsimPlan[] = [];
  for (const id of packages) {
    const bought = purchases.filter(({ upstreamPackageId }) => upstreamPackageId === id);
    const listed = esim.plans.filter(({ upstreamPackageId }) => upstreamPackageId === id).toSorted(byStart);
    if (listed.length === bought.length)
      bought.forEach((purchase, index) => matched.set(purchase, shown(esim, listed[index]!, purchase)));
    else if (listed.length === 0)
      for (const purchase of bought) matched.set(purchase, unknownPlan(esim, purchase));
    else unmatched.push(...unmatchedPlans(esim, listed, bought));
  }
  return [
    ...purchases.flatMap((purchase) => matched.get(purchase) ?? []),
    ...unmatched.map((plan, index) => ({ ...plan, id: `${planId(esim.id)}_${index + 1}` })),
  ];
}

/** The plans and purchases of a package when their numbers differ: one plan for each, with what all have in common. */
function unmatchedPlans(
  esim: EsimEntity,
  listed: readonly StoredPlan[],
  bought: readonly PlanPurchase[],
): readonly EsimPlan[] {
  const common = {
    source: only(bought.map(({ source }) => source)),
    packageId: only(bought.map(({ packageId }) => packageId)),
  };
  const unlisted = Array.from({ length: Math.max(0, bought.length - listed.length) }, () => null);
  return [...listed, ...unlisted].map((plan) => ({
    ...(plan ? shown(esim, plan, null) : unknownPlan(esim, null)),
    ...common,
  }));
}

function only<T>(values: readonly T[]): T | null {
  return new Set(values).size === 1 ? values[0]! : null;
}

/** The first plan stands for the eSIM. */
function pooledPlan(esim: EsimEntity, purchase: PlanPurchase, isFirst: boolean): EsimPlan {
  const plan = unknownPlan(esim, purchase);
  if (!isFirst) return plan;
  const { status, activatedAt: startsAt, expiresAt: endsAt } = esim;
  return { ...plan, startsAt, endsAt, status: isOver(status) ? 'ended' : startsAt ? 'active' : 'queued' };
}

function unknownPlan(esim: EsimEntity, purchase: PlanPurchase | null): EsimPlan {
  return {
    ...identityOf(esim, purchase),
    status: isOver(esim.status) ? 'ended' : 'unknown',
    totalBytes: null,
    usedBytes: null,
    remainingBytes: null,
    startsAt: null,
    endsAt: null,
    asOf: esim.readAt ?? esim.usageAsOf,
  };
}

/** Nothing of an ended plan can be used any more, whatever was left at its last reading. */
function shown(esim: EsimEntity, plan: StoredPlan, purchase: PlanPurchase | null): EsimPlan {
  const { totalBytes, remainingBytes: left } = plan;
  const status = isOver(esim.status) ? 'ended' : plan.status;
  return {
    ...identityOf(esim, purchase),
    status,
    totalBytes,
    usedBytes: totalBytes === null || left === null ? null : Math.max(0, totalBytes - left),
    remainingBytes: status === 'ended' && left !== null ? 0 : left,
    startsAt: toDate(plan.startsAt),
    endsAt: toDate(plan.endsAt),
    asOf: toDate(plan.lastListedAt) ?? esim.readAt ?? esim.usageAsOf,
  };
}

/** One order has several eSIMs, so its plan is named after the eSIM. */
function identityOf(
  esim: EsimEntity,
  purchase: PlanPurchase | null,
): Pick<EsimPlan, 'id' | 'source' | 'purchaseId' | 'packageId'> {
  return {
    id: planId(purchase?.source === 'topup' ? purchase.id : esim.id),
    source: purchase?.source ?? null,
    purchaseId: purchase?.id ?? null,
    packageId: purchase?.packageId ?? null,
  };
}

function planId(ownerId: string): string {
  return ownerId.replace(/^[a-z]+_/, 'pln_');
}

function toDate(time: string | null): Date | null {
  return time === null ? null : new Date(time);
}
