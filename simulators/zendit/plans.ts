import type { Faults, PlanReading } from './faults.ts';
import { type Purchase, toTime } from './purchase.ts';

const DAY_MS = 86_400_000;

/**
 * The body of `GET /esim/{iccId}/plans`: the first plan is ACTIVE once a reading gives it a start, and
 * `queuedPlansStart` says when the others follow. Before installation `firstInstalledAt` is empty.
 */
export function plansBody(
  iccid: string,
  purchases: readonly Purchase[],
  reading: PlanReading,
  { endedPlansLeave, queuedPlansStart }: Pick<Faults, 'endedPlansLeave' | 'queuedPlansStart'>,
): Record<string, unknown> {
  const listed = reading.gone ? [] : purchases;
  let unspentGB = reading.usedGB ?? 0;
  let { startAt } = reading;
  const all = listed.map((purchase, i) => {
    const { offer } = purchase;
    const spentGB = Math.min(unspentGB, offer.dataGB);
    unspentGB -= spentGB;
    const runtime = runtimeOf(i === 0 ? reading : { startAt }, offer.durationDays);
    const isUsedUp = !offer.dataUnlimited && spentGB === offer.dataGB;
    startAt = nextStartOf(runtime, queuedPlansStart, isUsedUp ? reading.usedUpAt : undefined);
    return {
      iccid,
      offerId: offer.offerId,
      description: offer.notes,
      initialDataGB: offer.dataGB,
      remainingDataGB: roundGB(offer.dataGB - spentGB),
      unlimited: offer.dataUnlimited,
      ...runtime,
    };
  });
  const list = endedPlansLeave ? all.filter(isListed) : all;
  return {
    firstInstalledAt: reading.firstInstalledAt ?? '',
    total: list.length,
    list: list.map((plan) => ({ ...plan, ...reading.figures })),
  };
}

interface ListedPlan {
  readonly remainingDataGB: number;
  readonly unlimited: boolean;
  readonly endAt?: string;
}

/** Whether a plan is still active or queued: it has data left, and its end has not come. */
function isListed({ remainingDataGB, unlimited, endAt }: ListedPlan): boolean {
  return (unlimited || remainingDataGB > 0) && (endAt === undefined || Date.parse(endAt) > Date.now());
}

interface Runtime {
  readonly status: string;
  readonly startAt?: string;
  readonly endAt?: string;
}

/** Start of the plan behind this one; undefined while it waits. */
function nextStartOf(
  { endAt }: Runtime,
  start: Faults['queuedPlansStart'],
  usedUpAt: string | undefined,
): string | undefined {
  if (start === 'exhaustion' && usedUpAt !== undefined) return usedUpAt;
  if (start === 'never' || endAt === undefined || Date.parse(endAt) > Date.now()) return undefined;
  return endAt;
}

function runtimeOf(
  { startAt, endAt }: { readonly startAt?: string | undefined; readonly endAt?: string },
  durationDays: number,
): Runtime {
  if (startAt === undefined) return { status: 'QUEUED' };
  return {
    status: 'ACTIVE',
    startAt,
    endAt: endAt ?? toTime(Date.parse(startAt) + durationDays * DAY_MS),
  };
}

/** Six digits, like the real provider; binary fractions are not shown. */
function roundGB(dataGB: number): number {
  return Math.round(dataGB * 1_000_000) / 1_000_000;
}
