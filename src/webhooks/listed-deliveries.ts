import { isId, timeOfId } from '../common/ids.js';
import { dayOf, MAX_DAYS_AHEAD } from '../infra/partition-days.js';
import type { DeliveryStatus } from './delivery.js';

const ofEndpoint = (column: string): string =>
  `(SELECT ${column} FROM webhook_endpoints w WHERE w.id = :endpointId)`;
const KEPT = `t.status = 'pending' AND t.created_at >= coalesce(${ofEndpoint('w.discard_before')}, '-infinity')`;

/** Disjoint conditions: no delivery matches two of them. */
interface ListedParts {
  /** Conditions for the partition of open deliveries, which belongs to no day. */
  readonly open: readonly string[];
  /** Conditions for the daily partitions. */
  readonly ended: readonly string[];
}

/**
 * `STATUS_CONDITIONS` split for the list of one endpoint. Conditions on the endpoint are evaluated once instead of per
 * delivery, so that each part is read through the index of its stored status.
 */
const LISTED: Readonly<Record<DeliveryStatus, ListedParts>> = {
  pending: { open: [`${KEPT} AND ${ofEndpoint('w.enabled')}`], ended: [] },
  held: { open: [`${KEPT} AND NOT ${ofEndpoint('w.enabled')}`], ended: [] },
  discarded: {
    open: [
      `t.status = 'discarding'`,
      `t.status = 'pending' AND t.created_at < ${ofEndpoint('w.discard_before')}`,
    ],
    ended: [`t.status = 'discarded'`],
  },
  delivered: { open: [], ended: [`t.status = 'delivered'`] },
  failed: { open: [], ended: [`t.status = 'failed'`] },
};
/** For any status: each day's window also reads that day's open deliveries. */
const OF_ANY_STATUS: ListedParts = { open: [], ended: ['true'] };

/** The parts to read for a status filter, or without one; the parameter is `:endpointId`. */
export function listedParts(status: DeliveryStatus | undefined): ListedParts {
  return status === undefined ? OF_ANY_STATUS : LISTED[status];
}

/**
 * Lower bound of a delivery's creation. A delivery is not older than its event, whose id is at most MAX_DAYS_AHEAD days
 * ahead of the database's clock.
 */
export function earliestDelivery(eventId: string): Date {
  return isId('evt', eventId) ? dayOf(timeOfId(eventId), -MAX_DAYS_AHEAD) : new Date(0);
}
