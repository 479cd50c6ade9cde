import { isId, timeOfId } from '../common/ids.js';
import { dayOf, MOST_DAYS_AHEAD } from '../infra/partition-days.js';
import type { DeliveryStatus } from './delivery.js';

const ofEndpoint = (column: string): string =>
  `(SELECT ${column} FROM webhook_endpoints w WHERE w.id = :endpointId)`;
const KEPT = `t.status = 'pending' AND t.created_at >= coalesce(${ofEndpoint('w.discard_before')}, '-infinity')`;

/** Conditions that have no delivery in common. */
interface ListedParts {
  /** In the partition of what is open, which is no day's. */
  readonly open: readonly string[];
  /** In the days. */
  readonly ended: readonly string[];
}

/**
 * `STATUS_CONDITIONS` for the list of one endpoint, in parts. What is asked of the endpoint is asked once and not for
 * each delivery, so that each part is read by the index of its stored status.
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
/** Of any status: in the window of each day, what is open and of that day too. */
const OF_ANY_STATUS: ListedParts = { open: [], ended: ['true'] };

/** What a list of a status, or of any, reads; `:endpointId` is its parameter. */
export function listedParts(status: DeliveryStatus | undefined): ListedParts {
  return status === undefined ? OF_ANY_STATUS : LISTED[status];
}

/** No delivery is older than its event, and an event's id is at most so many days ahead of the database's clock. */
export function earliestDelivery(eventId: string): Date {
  return isId('evt', eventId) ? dayOf(timeOfId(eventId), -MOST_DAYS_AHEAD) : new Date(0);
}
