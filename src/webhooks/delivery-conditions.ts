import type { DeliveryStatus } from './delivery.js';

const ofEndpoint = (condition: string): string =>
  `EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.id = t.endpoint_id AND ${condition})`;
const GIVEN_UP = ofEndpoint('t.created_at < w.discard_before');

/** The rules of `deliveryStatus` as SQL over a delivery `t`. */
export const STATUS_CONDITIONS: Readonly<Record<DeliveryStatus, string>> = {
  pending: `(t.status = 'pending' AND ${ofEndpoint('w.enabled')} AND NOT ${GIVEN_UP})`,
  held: `(t.status = 'pending' AND ${ofEndpoint('NOT w.enabled')} AND NOT ${GIVEN_UP})`,
  discarded: `(t.status = 'discarded' OR t.status = 'pending' AND ${GIVEN_UP})`,
  delivered: `t.status = 'delivered'`,
  failed: `t.status = 'failed'`,
};
