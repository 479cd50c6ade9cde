import type { PlanReading } from './faults.ts';
import { type Purchase, toTime } from './purchase.ts';

const DAY_MS = 86_400_000;

/** The body of `GET /esim/{iccId}/plans`: the first plan is ACTIVE once a reading gave it a start. */
export function plansBody(
  iccid: string,
  purchases: readonly Purchase[],
  reading: PlanReading,
): Record<string, unknown> {
  const listed = reading.gone ? [] : purchases;
  let unspentGB = reading.usedGB ?? 0;
  const list = listed.map((purchase, i) => {
    const { offer } = purchase;
    const spentGB = Math.min(unspentGB, offer.dataGB);
    unspentGB -= spentGB;
    return {
      iccid,
      offerId: offer.offerId,
      description: offer.notes,
      initialDataGB: offer.dataGB,
      remainingDataGB: roundGB(offer.dataGB - spentGB),
      unlimited: offer.dataUnlimited,
      ...runtimeOf(i === 0 ? reading : {}, offer.durationDays),
    };
  });
  return {
    ...(reading.firstInstalledAt === undefined ? {} : { firstInstalledAt: reading.firstInstalledAt }),
    total: list.length,
    list,
  };
}

function runtimeOf({ startAt, endAt }: PlanReading, durationDays: number): Record<string, string> {
  if (startAt === undefined) return { status: 'QUEUED' };
  return {
    status: 'ACTIVE',
    startAt,
    endAt: endAt ?? toTime(Date.parse(startAt) + durationDays * DAY_MS),
  };
}

/** Six digits, as upstream; binary fractions are not shown. */
function roundGB(dataGB: number): number {
  return Math.round(dataGB * 1_000_000) / 1_000_000;
}
